#include "autograd/call_rule.h"

#include "base/error.h"
#include "engine/custom_op.h"
#include "shape/shape.h"
#include "tensor/create.h"
#include "tensor/custom.h"

namespace tiny {

std::vector<std::pair<UOp, UOp>> call_adjoints(const Ref<Context>& context, const UOp& result,
                                               std::span<const UOp> reached) {
  const Ref<const HostCall>& call = call_result(result).call;
  const auto& function = static_cast<const CustomCall&>(*call->function);
  const Ref<const CustomOp> gradient = function.op->gradient();
  require(static_cast<bool>(gradient), Status::Unsupported, "the operator ",
          to_string(*function.op), " has no gradient function");
  const std::vector<UOp> sources(result.src().begin(), result.src().end());
  std::vector<Tensor> inputs;
  std::vector<size_t> wanted;
  const auto tensor = [&](const UOp& node, const Shape& shape) {
    return Tensor(context, make_reshape(node, shape));
  };
  for (const HostCall::Value& input : call->inputs) {
    if (input.dtype.is_float() && input.source >= 0)
      wanted.push_back(static_cast<size_t>(input.source));
    const bool is_there = input.dtype != kVoid && input.source >= 0;
    inputs.push_back(is_there ? tensor(sources[static_cast<size_t>(input.source)], input.shape)
                              : Tensor());
  }
  for (size_t i = 0; i < call->outputs.size(); ++i)
    inputs.push_back(tensor(make_call(result.graph(), call, sources, i), call->outputs[i].shape));
  for (size_t i = 0; i < call->outputs.size(); ++i)
    inputs.push_back(reached[i] ? tensor(reached[i], call->outputs[i].shape) : Tensor());
  const std::vector<Tensor> slopes =
      call_custom(context, gradient, function.attributes, inputs, wanted.size());
  std::vector<std::pair<UOp, UOp>> given;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const UOp& source = sources[wanted[i]];
    given.emplace_back(source, make_reshape(slopes[i].node(), shape_of(source)));
  }
  return given;
}

}  // namespace tiny
