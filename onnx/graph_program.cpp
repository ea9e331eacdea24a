#include "onnx/graph_program.h"

#include <algorithm>

#include "base/error.h"
#include "engine/realize.h"
#include "schedule/schedule.h"
#include "tensor/create.h"
#include "tensor/movement.h"
#include "tensor/value.h"

namespace tiny::onnx {

namespace {

ModelProgram::Port port_of(const Tensor& tensor, std::string name) {
  require(all_const(tensor.shape()), Status::Unsupported, name, " has the shape ",
          tiny::to_string(tensor.shape()), "; its dimensions must be numbers");
  ModelProgram::Port port;
  port.name = std::move(name);
  port.dtype = tensor.dtype();
  port.shape = const_dims(tensor.shape());
  for (const tiny::Dim& d : tensor.shape()) port.sizes.emplace_back(d, std::span<const UOp>());
  port.bytes = element_count(tensor) * tensor.dtype().bytes();
  return port;
}

// The Buffer of a placeholder.
UOp placeholder_of(const Tensor& tensor, size_t index) {
  const UOp& node = tensor.node();
  const UOp base = node.op() == Op::Reshape ? UOp(node.src(0)) : node;
  require(is_input(base) && tensor.cell()->node() == node, Status::InvalidArgument, "inputs[",
          index, "] is a tensor with a value; an input is a placeholder");
  return base;
}

// The memory of an output that the program itself writes; null if the output is to be copied.
Ref<Storage> written_memory(const UOp& node) {
  const auto stored = as_view(node);
  if (!stored || stored->base.op() != Op::After || has_memory(stored->base)) return nullptr;
  if (!stored->view.offset.is_const() ||
      !is_row_major(View{stored->view.shape, stored->view.strides, 0}))
    return nullptr;
  UOp below = stored->base;
  while (!has_memory(below)) below = UOp(below.src(0));
  const Ref<Storage> memory = storage_of(below);
  const int64_t offset = stored->view.offset.value() * node.dtype().bytes();
  return offset == 0 ? memory : Storage::part(memory, offset);
}

}  // namespace

Tensor make_placeholder(const Ref<Context>& context, DType dtype, const Ints& shape) {
  check_shape(to_shape(shape), dtype);
  const UOp node = make_input(*context, dtype, element_count(shape, "an input"));
  return Tensor(context, make_reshape(node, to_shape(shape)));
}

Ref<const ModelProgram> compile_tensors(const Ref<Context>& context, std::span<const Tensor> inputs,
                                        std::span<const Tensor> outputs) {
  const Ref<ModelProgram> program = make_ref<ModelProgram>();
  std::vector<UOp> placeholders;
  for (size_t i = 0; i < inputs.size(); ++i) {
    ModelProgram::Port port = port_of(inputs[i], cat("inputs[", i, "]"));
    const UOp node = placeholder_of(inputs[i], i);
    require(!std::ranges::count(placeholders, node), Status::InvalidArgument, "inputs[", i,
            "] is listed twice");
    port.number = port.bytes > 0 ? static_cast<int64_t>(i) : -1;
    placeholders.push_back(node);
    program->inputs.push_back(std::move(port));
  }
  std::vector<UOp> all;
  std::vector<UOp> copied;
  for (size_t i = 0; i < outputs.size(); ++i) {
    ModelProgram::Port port = port_of(outputs[i], cat("outputs[", i, "]"));
    const UOp& node = outputs[i].node();
    if (port.bytes > 0) {
      all.push_back(node);
      port.captured = written_memory(node);
      if (!port.captured) {
        // Outputs that are the same value share its memory.
        const auto at = std::ranges::find(copied, node);
        port.number = at - copied.begin();
        if (at == copied.end()) copied.push_back(node);
      }
    }
    program->outputs.push_back(std::move(port));
  }
  if (all.empty()) return program;
  require_values(all, placeholders);
  const std::vector<UOp> versions = pending_versions(all);
  program->compiled = compile_program(*context, copied, placeholders, {}, {false, versions});
  take_versions(*context, versions);
  return program;
}

}  // namespace tiny::onnx
