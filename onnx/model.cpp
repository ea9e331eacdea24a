#include "onnx/model.h"

namespace tiny::onnx {

namespace {

std::string dims_text(const std::vector<Dim>& dims) {
  std::vector<std::string> items;
  for (const Dim& dim : dims)
    items.push_back(dim.is_known() ? std::to_string(dim.value) : dim.name.empty() ? "?" : dim.name);
  return cat("[", join(items, ", "), "]");
}

}  // namespace

std::string to_string(const ValueType& type) {
  const std::string inner = type.element.empty() ? "?" : to_string(type.element[0]);
  const std::string elem = type.elem_type == 0 ? "?" : tensor_type_name(type.elem_type);
  const std::string shape = type.has_rank ? dims_text(type.dims) : "";
  switch (type.kind) {
    case ValueType::Kind::None:
      return "untyped";
    case ValueType::Kind::Tensor:
      return cat("tensor(", elem, ")", shape);
    case ValueType::Kind::SparseTensor:
      return cat("sparse_tensor(", elem, ")", shape);
    case ValueType::Kind::Sequence:
      return cat("seq(", inner, ")");
    case ValueType::Kind::Optional:
      return cat("optional(", inner, ")");
    case ValueType::Kind::Map:
      return cat("map(", elem, ", ", inner, ")");
  }
  invariant(false, "a value type has a kind");
  return "";
}

const char* to_string(AttributeType type) {
  switch (type) {
#define ATTRIBUTE_TYPE(name, text, number) \
  case AttributeType::name:                \
    return #text;
#include "io/onnx_proto.def"
  }
  return "unknown";
}

const Attribute* Node::attribute(std::string_view wanted) const {
  for (const Attribute& a : attributes)
    if (a.name == wanted) return &a;
  return nullptr;
}

std::string describe(const Node& node) {
  std::string label = node.name;
  for (size_t i = 0; label.empty() && i < node.outputs.size(); ++i) label = node.outputs[i];
  return cat(node.domain, node.domain.empty() ? "" : ".", node.op_type, " \"", label, "\"");
}

FunctionKey key_of(const Node& call) {
  return {call.op_type, call.domain, call.overload};
}

FunctionKey key_of(const Function& function) {
  return {function.name, function.domain, function.overload};
}

}  // namespace tiny::onnx
