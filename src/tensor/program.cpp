#include "tensor/program.h"

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "engine/computed_anew.h"
#include "engine/realize.h"
#include "engine/versions.h"
#include "schedule/schedule.h"
#include "tensor/movement.h"
#include "tensor/value.h"

namespace tiny {

namespace {

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
  return Storage::part(storage_of(below), stored->view.offset.value() * node.dtype().bytes());
}

}  // namespace

TensorProgram::Port make_port(std::string name, DType dtype, const Shape& shape,
                              std::span<const UOp> variables) {
  TensorProgram::Port port{std::move(name), dtype, {}, dtype.bytes(), -1, {}};
  for (const Dim& d : shape) {
    port.sizes.emplace_back(d, variables);
    port.shape.push_back(upper_bound(d));
    port.bytes = checked_mul(port.bytes, port.shape.back(), "a tensor's size");
  }
  return port;
}

namespace {

// Adds the Variables among the nodes to those that were found.
void collect_variables(const std::vector<UOp>& order, std::vector<UOp>& found) {
  for (const UOp& u : order) {
    if (u.op() != Op::Variable || std::ranges::count(found, u)) continue;
    for (const UOp& other : found)
      require(other.variable_arg().name != u.variable_arg().name, Status::InvalidArgument,
              "two variables with the name \"", u.variable_arg().name,
              "\" and different ranges; a program tells variables by their names");
    found.push_back(u);
  }
}

// The Variables of the inputs' shapes, then those below the outputs.
std::vector<UOp> variables_of(std::span<const Tensor> inputs, std::span<const Tensor> outputs) {
  std::vector<UOp> sizes;
  std::vector<UOp> values;
  for (const std::span<const Tensor> tensors : {inputs, outputs})
    for (const Tensor& t : tensors)
      for (const Dim& d : t.shape())
        if (!d.is_const()) sizes.push_back(d.expression());
  for (const Tensor& t : outputs) values.push_back(t.node());
  std::vector<UOp> found;
  collect_variables(topological(sizes), found);
  collect_variables(topological(values, has_memory), found);
  return found;
}

}  // namespace

std::vector<UOp> variables_below(std::span<const UOp> expressions) {
  std::vector<UOp> found;
  collect_variables(topological(expressions), found);
  return found;
}

Tensor make_placeholder(const Ref<Context>& context, DType dtype, const Shape& shape) {
  check_shape(shape, dtype);
  const UOp node = make_input(*context, dtype, product(shape));
  return Tensor(context, make_reshape(node, shape));
}

Ref<const TensorProgram> compile_tensors(const Ref<Context>& context,
                                         std::span<const Tensor> inputs,
                                         std::span<const Tensor> outputs) {
  const Ref<TensorProgram> program = make_ref<TensorProgram>();
  const std::vector<UOp> variables = variables_of(inputs, outputs);
  for (const UOp& v : variables) {
    const VariableArg& arg = v.variable_arg();
    program->variables.push_back({arg.name, arg.min, arg.max});
  }
  const auto port_of = [&](const Tensor& tensor, std::string name) {
    return make_port(std::move(name), tensor.dtype(), tensor.shape(), variables);
  };
  std::vector<UOp> placeholders;
  for (size_t i = 0; i < inputs.size(); ++i) {
    TensorProgram::Port port = port_of(inputs[i], cat("inputs[", i, "]"));
    const UOp node = placeholder_of(inputs[i], i);
    require(!std::ranges::count(placeholders, node), Status::InvalidArgument, "inputs[", i,
            "] is listed twice");
    (port.bytes > 0 ? port.number : port.empty_number) = static_cast<int64_t>(i);
    placeholders.push_back(node);
    program->inputs.push_back(std::move(port));
  }
  std::vector<UOp> all;
  for (const Tensor& output : outputs) {
    program->outputs.push_back(port_of(output, cat("outputs[", program->outputs.size(), "]")));
    if (program->outputs.back().bytes > 0) all.push_back(output.node());
  }
  if (all.empty()) return program;
  const ComputedAnew anew(*context, all, placeholders);
  require_values(all, placeholders, variables);
  const std::vector<UOp> versions = pending_versions(*context, all, placeholders);
  require_computed_by_runs(all, versions);
  part_equals(*context, memories_written(versions));
  std::vector<UOp> copied;
  for (size_t i = 0; i < outputs.size(); ++i) {
    TensorProgram::Port& port = program->outputs[i];
    const UOp& node = outputs[i].node();
    if (port.bytes == 0) continue;
    port.captured = written_memory(node);
    if (port.captured) continue;
    // Outputs that are the same value share its memory.
    const auto at = std::ranges::find(copied, node);
    port.number = at - copied.begin();
    if (at == copied.end()) copied.push_back(node);
  }
  program->compiled = compile_program(*context, copied, placeholders, variables, {false, versions});
  take_versions(*context, versions);
  return program;
}

}  // namespace tiny
