#include "onnx/write.h"

#include <protozero/pbf_writer.hpp>

#include "base/error.h"

namespace tiny::onnx {

namespace {

using protozero::pbf_writer;

// Parts of a file one after the other: texts that were made, and bytes that lie elsewhere.
class Parts {
 public:
  void add(std::string made) { pieces_.push_back({std::move(made), {}}); }
  void lend(std::string_view bytes) {
    if (!bytes.empty()) pieces_.push_back({{}, bytes});
  }
  std::vector<std::string_view> views() const {
    std::vector<std::string_view> all;
    for (const Piece& piece : pieces_)
      all.push_back(piece.made.empty() ? piece.lent : std::string_view(piece.made));
    return all;
  }
  int64_t size() const {
    int64_t total = 0;
    for (const std::string_view part : views()) total += std::ssize(part);
    return total;
  }

 private:
  struct Piece {
    std::string made;
    std::string_view lent;
  };
  std::vector<Piece> pieces_;
};

// What stands before `size` bytes of a field.
std::string field_head(uint32_t number, int64_t size) {
  std::string out;
  const auto key =
      uint64_t{number} << 3 | static_cast<uint64_t>(protozero::pbf_wire_type::length_delimited);
  protozero::write_varint(std::back_inserter(out), key);
  protozero::write_varint(std::back_inserter(out), static_cast<uint64_t>(size));
  return out;
}

// All of a tensor but its bytes, which come last.
std::string tensor_head(const TensorData& tensor) {
  namespace f = field::TensorProto;
  std::string out;
  pbf_writer writer(out);
  for (const int64_t dim : tensor.dims) writer.add_int64(f::dims, dim);
  writer.add_int32(f::data_type, tensor.type);
  if (!tensor.name.empty()) writer.add_string(f::name, tensor.name);
  for (const std::string& text : tensor.strings) writer.add_bytes(f::string_data, text);
  if (tensor.strings.empty()) out += field_head(f::raw_data, tensor.bytes.size());
  return out;
}

std::string type_bytes(const ValueType& type) {
  invariant(type.kind == ValueType::Kind::Tensor && type.has_rank, "values are tensors");
  std::string shape;
  pbf_writer shape_writer(shape);
  for (const Dim& dim : type.dims) {
    std::string bytes;
    pbf_writer writer(bytes);
    if (dim.is_known())
      writer.add_int64(field::Dimension::dim_value, dim.value);
    else if (!dim.name.empty())
      writer.add_string(field::Dimension::dim_param, dim.name);
    shape_writer.add_message(field::TensorShapeProto::dim, bytes);
  }
  std::string tensor;
  pbf_writer writer(tensor);
  writer.add_int32(field::TypeTensor::elem_type, type.elem_type);
  writer.add_message(field::TypeTensor::shape, shape);
  std::string out;
  pbf_writer(out).add_message(field::TypeProto::tensor_type, tensor);
  return out;
}

std::string value_bytes(const ValueInfo& value) {
  std::string out;
  pbf_writer writer(out);
  writer.add_string(field::ValueInfoProto::name, value.name);
  writer.add_message(field::ValueInfoProto::type, type_bytes(value.type));
  return out;
}

void add_graph(Parts& parts, const Graph& graph);

std::string attribute_bytes(const Attribute& attribute) {
  namespace f = field::AttributeProto;
  std::string out;
  pbf_writer writer(out);
  writer.add_string(f::name, attribute.name);
  writer.add_enum(f::type, static_cast<int32_t>(attribute.type));
  if (attribute.type == AttributeType::Float) writer.add_float(f::f, attribute.f);
  if (attribute.type == AttributeType::Int) writer.add_int64(f::i, attribute.i);
  if (attribute.type == AttributeType::String) writer.add_bytes(f::s, attribute.s);
  for (const float real : attribute.floats) writer.add_float(f::floats, real);
  for (const int64_t integer : attribute.ints) writer.add_int64(f::ints, integer);
  for (const std::string& text : attribute.strings) writer.add_bytes(f::strings, text);
  for (const TensorData& tensor : attribute.tensors)
    writer.add_message(f::t, tensor_head(tensor).append(tensor.bytes.text()));
  for (const Graph& graph : attribute.graphs) {
    Parts parts;
    add_graph(parts, graph);
    std::string bytes;
    for (const std::string_view part : parts.views()) bytes += part;
    writer.add_message(f::g, bytes);
  }
  return out;
}

std::string node_bytes(const Node& node) {
  namespace f = field::NodeProto;
  std::string out;
  pbf_writer writer(out);
  for (const std::string& name : node.inputs) writer.add_string(f::input, name);
  for (const std::string& name : node.outputs) writer.add_string(f::output, name);
  if (!node.name.empty()) writer.add_string(f::name, node.name);
  writer.add_string(f::op_type, node.op_type);
  for (const Attribute& attribute : node.attributes)
    writer.add_message(f::attribute, attribute_bytes(attribute));
  if (!node.domain.empty()) writer.add_string(f::domain, node.domain);
  return out;
}

void add_graph(Parts& parts, const Graph& graph) {
  namespace f = field::GraphProto;
  std::string out;
  pbf_writer writer(out);
  for (const Node& node : graph.nodes) writer.add_message(f::node, node_bytes(node));
  writer.add_string(f::name, graph.name);
  for (const ValueInfo& value : graph.inputs) writer.add_message(f::input, value_bytes(value));
  for (const ValueInfo& value : graph.outputs) writer.add_message(f::output, value_bytes(value));
  parts.add(std::move(out));
  for (const TensorData& tensor : graph.initializers) {
    std::string head = tensor_head(tensor);
    const int64_t size = std::ssize(head) + tensor.bytes.size();
    parts.add(field_head(f::initializer, size) + head);
    parts.lend(tensor.bytes.text());
  }
}

std::string model_head(const Model& model) {
  namespace f = field::ModelProto;
  std::string out;
  pbf_writer writer(out);
  writer.add_int64(f::ir_version, model.ir_version);
  for (const OpsetImport& import : model.opset_imports) {
    std::string bytes;
    pbf_writer import_writer(bytes);
    if (!import.domain.empty())
      import_writer.add_string(field::OperatorSetIdProto::domain, import.domain);
    import_writer.add_int64(field::OperatorSetIdProto::version, import.version);
    writer.add_message(f::opset_import, bytes);
  }
  writer.add_string(f::producer_name, model.producer_name);
  writer.add_string(f::producer_version, model.producer_version);
  return out;
}

}  // namespace

void write_model(const std::string& path, const Model& model, const StopSignal* stop) {
  Parts graph;
  add_graph(graph, model.graph);
  const int64_t size = graph.size();
  require(size < INT32_MAX, Status::Limit, path, " would have ", size,
          " bytes; a protobuf message has less than 2 GiB");
  const std::string head = model_head(model) + field_head(field::ModelProto::graph, size);
  std::vector<std::string_view> parts = graph.views();
  parts.insert(parts.begin(), head);
  write_file(path, parts, stop);
}

}  // namespace tiny::onnx
