#include "onnx/read/attribute.h"

#include "base/text.h"
#include "onnx/read/graph.h"
#include "onnx/read/structure.h"
#include "onnx/read/value_type.h"

namespace tiny::onnx {

namespace {

// The values an AttributeProto holds, as a set of the types they are values of.
class Seen {
 public:
  void add(AttributeType type) { bits_ |= bit(type); }
  bool has(AttributeType type) const { return (bits_ & bit(type)) != 0; }
  // The only type seen, or Undefined.
  AttributeType only() const {
    for (uint32_t i = 1; i < 32; ++i)
      if (bits_ == uint32_t{1} << i) return static_cast<AttributeType>(i);
    return AttributeType::Undefined;
  }

 private:
  static uint32_t bit(AttributeType type) { return uint32_t{1} << static_cast<uint32_t>(type); }
  uint32_t bits_ = 0;
};

// Settles the attribute's type: as stated, or, in files older than the field, from the value.
void settle_type(const WireReader& r, Attribute& attribute, int64_t stated, const Seen& seen) {
  using enum AttributeType;
  r.check(!attribute.name.empty(), "an attribute without a name");
  bool known = false;
#define ATTRIBUTE_TYPE(name, text, number) known = known || stated == number;
#include "io/onnx_proto.def"
  r.check(known, "attribute \"", attribute.name, "\" has type ", stated,
          ", which is no attribute type");
  attribute.type = stated == 0 ? seen.only() : static_cast<AttributeType>(stated);
  if (!attribute.ref_attr_name.empty()) return;
  r.check(attribute.type != Undefined, "attribute \"", attribute.name,
          "\" has neither a type nor one value");
  // What the type does not speak of is no part of the attribute.
  const bool tensors = attribute.type == Tensor || attribute.type == Tensors ||
                       attribute.type == SparseTensor || attribute.type == SparseTensors;
  if (!tensors) attribute.tensors.clear();
  if (attribute.type != Graph && attribute.type != Graphs) attribute.graphs.clear();
  if (attribute.type != TypeProto && attribute.type != TypeProtos) attribute.types.clear();
  const bool needs_one = attribute.type == Tensor || attribute.type == Graph ||
                         attribute.type == SparseTensor || attribute.type == TypeProto;
  const size_t values = attribute.tensors.size() + attribute.graphs.size() + attribute.types.size();
  r.check(!needs_one || (values == 1 && seen.has(attribute.type)), "attribute \"", attribute.name,
          "\" of type ", to_string(attribute.type), " has ", values, " values");
}

// Takes the current field if it is a tensor, a graph or a type.
bool nested_value(WireReader& r, const TensorSource& source, Attribute& a, Seen& seen,
                  int64_t depth) {
  namespace f = field::AttributeProto;
  using enum AttributeType;
  const auto tensor = [&](AttributeType kind) {
    seen.add(kind);
    WireReader child = r.message(ProtoMessage::TensorProto, a.tensors.size());
    append(r, a.tensors, read_tensor(child, source));
  };
  const auto sparse_tensor = [&](AttributeType kind) {
    seen.add(kind);
    WireReader child = r.message(ProtoMessage::SparseTensorProto, a.tensors.size());
    append(r, a.tensors, read_sparse_tensor(child, source));
  };
  const auto subgraph = [&](AttributeType kind) {
    seen.add(kind);
    WireReader child = r.message(ProtoMessage::GraphProto, a.graphs.size());
    append(r, a.graphs, read_graph(child, source, depth + 1));
  };
  const auto value_type = [&](AttributeType kind) {
    seen.add(kind);
    WireReader child = r.message(ProtoMessage::TypeProto, a.types.size());
    append(r, a.types, read_value_type(child, 1));
  };
  switch (r.field()) {
    case f::t:
      tensor(Tensor);
      return true;
    case f::tensors:
      tensor(Tensors);
      return true;
    case f::sparse_tensor:
      sparse_tensor(SparseTensor);
      return true;
    case f::sparse_tensors:
      sparse_tensor(SparseTensors);
      return true;
    case f::g:
      subgraph(Graph);
      return true;
    case f::graphs:
      subgraph(Graphs);
      return true;
    case f::tp:
      value_type(TypeProto);
      return true;
    case f::type_protos:
      value_type(TypeProtos);
      return true;
    default:
      return false;
  }
}

}  // namespace

Attribute read_attribute(WireReader& r, const TensorSource& source, int64_t depth) {
  namespace f = field::AttributeProto;
  using enum AttributeType;
  const int64_t numbers_max = r.budget().limits.attribute_bytes / 8;
  Attribute a;
  Seen seen;
  int64_t stated = 0;
  while (r.next()) {
    switch (r.field()) {
      case f::name:
        a.name = r.name();
        break;
      case f::ref_attr_name:
        a.ref_attr_name = r.name();
        break;
      case f::type:
        stated = r.integer();
        break;
      case f::f:
        seen.add(Float);
        a.f = r.real();
        break;
      case f::i:
        seen.add(Int);
        a.i = r.integer();
        break;
      case f::s:
        seen.add(String);
        a.s = r.text();
        break;
      case f::floats:
        seen.add(Floats);
        r.append_reals(a.floats, numbers_max);
        break;
      case f::ints:
        seen.add(Ints);
        r.append_integers(a.ints, numbers_max);
        break;
      case f::strings:
        seen.add(Strings);
        append(r, a.strings, r.text());
        break;
      default:
        nested_value(r, source, a, seen, depth);
        break;
    }
  }
  settle_type(r, a, stated, seen);
  r.budget().charge_structure(static_cast<int64_t>(a.floats.size() * 4 + a.ints.size() * 8),
                              "the model's attributes");
  return a;
}

}  // namespace tiny::onnx
