#include "tensor/custom.h"

#include <utility>

#include "base/error.h"
#include "engine/compile.h"
#include "tensor/create.h"
#include "tensor/movement.h"

namespace tiny {

UOp stored_whole(const Tensor& tensor) {
  UOp base = tensor.node();
  while (base.op() == Op::Reshape) base = UOp(base.src(0));
  const bool is_output = base.op() == Op::Scan && scan_part(base).kind == ScanPart::Kind::Output;
  const bool is_whole =
      is_input(base) || base.op() == Op::Contiguous || base.op() == Op::Call || is_output;
  return is_whole ? base : base.graph().make(Op::Contiguous, {tensor.node()});
}

std::vector<Tensor> call_custom(const Ref<Context>& context, const Ref<const CustomOp>& op,
                                std::string attributes, const std::vector<Tensor>& inputs,
                                size_t outputs) {
  const Ref<HostCall> call = make_ref<HostCall>();
  std::vector<UOp> sources;
  for (const Tensor& input : inputs) {
    HostCall::Value& value = call->inputs.emplace_back();
    if (!input) continue;
    value.dtype = input.dtype();
    value.shape = input.shape();
    if (product(value.shape).is(0)) continue;
    value.source = std::ssize(sources);
    sources.push_back(stored_whole(input));
  }
  call->outputs = op->infer(attributes, call->inputs, outputs);
  invariant(call->outputs.size() == outputs, "an operator infers the outputs that are wanted");
  call->function = make_ref<CustomCall>(op, std::move(attributes));
  std::vector<Tensor> results;
  for (size_t i = 0; i < outputs; ++i) {
    const HostCall::Value& value = call->outputs[i];
    check_shape(value.shape, value.dtype);
    if (product(value.shape).is(0)) {
      results.push_back(full(context, value.dtype, value.shape, 0));
      continue;
    }
    const UOp row = make_call(context->graph(), call, sources, i);
    results.emplace_back(context, make_reshape(row, value.shape));
  }
  return results;
}

}  // namespace tiny
