#include "onnx/read/value_type.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "onnx/read/structure.h"

namespace tiny::onnx {

namespace {

int32_t element_type(WireReader& r) {
  const int64_t number = r.integer();
  r.check(number == 0 || ::tiny::tensor_type(number) != nullptr, number, " is no element type");
  return static_cast<int32_t>(number);
}

// Whether the text names a dimension: exporters write "?" and the like for what they do not know.
bool is_name(const std::string& text) {
  return std::ranges::any_of(text, [](char c) { return c != '?' && c != '*' && c != ' '; });
}

Dim dimension(WireReader& r) {
  Dim dim;
  while (r.next()) {
    // One of them: the last.  Writers also say -1 for "not known".
    if (r.field() == field::Dimension::dim_value) dim = {r.integer(), ""};
    if (r.field() == field::Dimension::dim_param) dim = {-1, r.name()};
  }
  if (!is_name(dim.name)) dim.name.clear();
  if (dim.value < 0) dim.value = -1;
  return dim;
}

void tensor_type(WireReader& r, ValueType& type) {
  static_assert(field::TypeTensor::elem_type == field::TypeSparseTensor::elem_type &&
                field::TypeTensor::shape == field::TypeSparseTensor::shape);
  while (r.next()) {
    if (r.field() == field::TypeTensor::elem_type) type.elem_type = element_type(r);
    if (r.field() != field::TypeTensor::shape) continue;
    WireReader shape = r.message(ProtoMessage::TensorShapeProto);
    type.has_rank = true;
    type.dims.clear();
    while (shape.next()) {
      if (shape.field() != field::TensorShapeProto::dim) continue;
      if (static_cast<int64_t>(type.dims.size()) >= r.budget().limits.rank)
        shape.fail(Status::Limit, "more dimensions than rank = ", r.budget().limits.rank);
      WireReader child = shape.message(ProtoMessage::Dimension, type.dims.size());
      append(r, type.dims, dimension(child));
    }
  }
}

void container_type(WireReader& r, ValueType& outer, int64_t depth) {
  static_assert(field::TypeSequence::elem_type == field::TypeOptional::elem_type);
  const bool is_map = outer.kind == ValueType::Kind::Map;
  const uint32_t inner = is_map ? field::TypeMap::value_type : field::TypeSequence::elem_type;
  while (r.next()) {
    if (is_map && r.field() == field::TypeMap::key_type) outer.elem_type = element_type(r);
    if (r.field() != inner) continue;
    WireReader child = r.message(ProtoMessage::TypeProto);
    outer.element.clear();
    append(r, outer.element, read_value_type(child, depth + 1));
  }
}

}  // namespace

ValueType read_value_type(WireReader& r, int64_t depth) {
  namespace f = field::TypeProto;
  using Kind = ValueType::Kind;
  check_depth(r, depth);
  ValueType type;
  while (r.next()) {
    Kind kind = Kind::None;
    ProtoMessage message = ProtoMessage::TypeTensor;
    switch (r.field()) {
      case f::tensor_type:
        kind = Kind::Tensor;
        break;
      case f::sparse_tensor_type:
        kind = Kind::SparseTensor;
        message = ProtoMessage::TypeSparseTensor;
        break;
      case f::sequence_type:
        kind = Kind::Sequence;
        message = ProtoMessage::TypeSequence;
        break;
      case f::optional_type:
        kind = Kind::Optional;
        message = ProtoMessage::TypeOptional;
        break;
      case f::map_type:
        kind = Kind::Map;
        message = ProtoMessage::TypeMap;
        break;
      default:
        continue;
    }
    type = ValueType();  // one of them: the last
    type.kind = kind;
    WireReader child = r.message(message);
    if (kind == Kind::Tensor || kind == Kind::SparseTensor)
      tensor_type(child, type);
    else
      container_type(child, type, depth);
  }
  return type;
}

ValueInfo read_value_info(WireReader& r) {
  ValueInfo info;
  while (r.next()) {
    if (r.field() == field::ValueInfoProto::name) info.name = r.name();
    if (r.field() == field::ValueInfoProto::type) {
      WireReader child = r.message(ProtoMessage::TypeProto);
      info.type = read_value_type(child, 1);
    }
  }
  return info;
}

}  // namespace tiny::onnx
