#include "onnx/export/emitter.h"

#include <cstring>

#include "base/error.h"

namespace tiny::onnx {

namespace {

HostTensor host_tensor(DType dtype, Ints shape, const void* data, size_t bytes) {
  const auto* begin = static_cast<const std::byte*>(data);
  return {dtype, std::move(shape), SharedBytes::own({begin, begin + bytes})};
}

}  // namespace

std::string Emitter::fresh(const std::string& stem) {
  const int64_t number = taken_[stem]++;
  if (number == 0) return stem;
  return fresh(cat(stem, "_", number));
}

Emitter::Names Emitter::node(const std::string& domain, std::string op_type, Names inputs,
                             std::vector<Attribute> attributes, size_t outputs) {
  onnx::Node made;
  made.domain = domain;
  for (size_t i = 0; i < outputs; ++i) made.outputs.push_back(fresh(op_type));
  made.name = made.outputs.front();
  made.op_type = std::move(op_type);
  made.inputs = std::move(inputs);
  made.attributes = std::move(attributes);
  graphs_.back()->nodes.push_back(std::move(made));
  return graphs_.back()->nodes.back().outputs;
}

std::string Emitter::node(std::string op_type, Names inputs, std::vector<Attribute> attributes) {
  return node("", std::move(op_type), std::move(inputs), std::move(attributes), 1).front();
}

std::string Emitter::memory(HostTensor tensor, const std::string& name) {
  TensorData data;
  data.name = fresh(name.empty() ? "constant" : name);
  data.type = tensor_type_of_dtype(tensor.dtype);
  data.count = element_count(tensor.shape, "a constant");
  data.dims = std::move(tensor.shape);
  data.bytes = std::move(tensor.bytes);
  model_.graph.initializers.push_back(std::move(data));
  return model_.graph.initializers.back().name;
}

std::string Emitter::ints(const Ints& values) {
  std::string& known = lists_[values];
  if (known.empty())
    known = memory(
        host_tensor(kInt64, {std::ssize(values)}, values.data(), values.size() * sizeof(int64_t)),
        "list");
  return known;
}

std::string Emitter::number(DType dtype, uint64_t bits) {
  std::string& known = numbers_[{to_string(dtype), bits}];
  if (known.empty())
    known = memory(host_tensor(dtype, {}, &bits, static_cast<size_t>(dtype.bytes())), "number");
  return known;
}

std::string Emitter::integer(int64_t value) {
  return number(kInt64, bits_of_int(kInt64, value));
}

void Emitter::set_variable(const UOp& variable, const std::string& input, int64_t axis) {
  variables_.try_emplace(variable.node(), input, axis);
}

// Sizes are those of the whole model: they stand before whatever graph needs them.
std::string Emitter::expression(const UOp& node) {
  const auto known = sizes_.find(node.node());
  if (known != sizes_.end()) return known->second.second;
  std::string made;
  if (node.is_const()) {
    made = number(node.dtype(), node.const_bits());
  } else if (node.op() == Op::Variable) {
    const auto at = variables_.find(node.node());
    require(at != variables_.end(), Status::Unsupported, "the variable \"",
            node.variable_arg().name, "\" is no dimension of an input by itself");
    made =
        this->node("Gather", {this->node("Shape", {at->second.first}), integer(at->second.second)},
                   {int_attribute("axis", 0)});
  } else {
    const std::vector<UOp> operands = operands_of(node);
    for (const UOp& operand : operands) set_name(operand, expression(operand));
    emit_elementary(*this, node, operands);
    made = name(node);
  }
  sizes_.emplace(node.node(), std::pair(node, made));
  return made;
}

std::string Emitter::size(const tiny::Dim& dim) {
  if (dim.is_const()) return integer(dim.value());
  std::vector<Graph*> inner;
  std::swap(inner, graphs_);
  graphs_ = {&model_.graph};
  std::string made = expression(dim.expression());
  graphs_ = std::move(inner);
  return made;
}

std::string Emitter::sizes(const Shape& shape) {
  if (all_const(shape)) return ints(const_dims(shape));
  Names parts;
  Ints run;
  const auto end_run = [&] {
    if (!run.empty()) parts.push_back(ints(run));
    run.clear();
  };
  for (const tiny::Dim& dim : shape) {
    if (dim.is_const()) {
      run.push_back(dim.value());
      continue;
    }
    end_run();
    parts.push_back(node("Unsqueeze", {size(dim), ints({0})}));
  }
  end_run();
  return parts.size() == 1 ? parts.front()
                           : node("Concat", std::move(parts), {int_attribute("axis", 0)});
}

const std::string& Emitter::name(const UOp& node) const {
  const auto at = names_.find(node.node());
  invariant(at != names_.end(), "operands are written before what is made of them");
  return at->second.second;
}

void Emitter::set_name(const UOp& node, std::string name) {
  names_.insert_or_assign(node.node(), std::pair(node, std::move(name)));
}

std::string Emitter::cast(const std::string& value, DType dtype) {
  return node("Cast", {value}, {int_attribute("to", tensor_type_of_dtype(dtype))});
}

std::string Emitter::bit_cast(const std::string& value, DType dtype) {
  has_bit_casts_ = true;
  return node("BitCast", {value}, {int_attribute("to", tensor_type_of_dtype(dtype))});
}

}  // namespace tiny::onnx
