#include "onnx/info.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/json.h"
#include "onnx/import/table.h"

namespace tiny::onnx {

namespace {

std::string type_text(const ValueType& type) {
  if (type.kind != ValueType::Kind::Tensor) return to_string(type);
  const TensorTypeInfo* info = tensor_type(type.elem_type);
  if (info && info->ours != ScalarType::Void) return tiny::to_string(DType(info->ours));
  return tensor_type_name(type.elem_type);
}

void write_port(JsonWriter& json, const ValueInfo& port) {
  json.begin_object().key("name").text(port.name).key("dtype").text(type_text(port.type));
  json.key("shape");
  if (port.type.kind == ValueType::Kind::Tensor && port.type.has_rank) {
    json.begin_array();
    for (const Dim& dim : port.type.dims) {
      if (dim.is_known())
        json.integer(dim.value);
      else if (!dim.name.empty())
        json.text(dim.name);
      else
        json.null();
    }
    json.end_array();
  } else {
    json.null();
  }
  json.end_object();
}

bool is_initializer(const Graph& graph, const std::string& name) {
  return std::any_of(graph.initializers.begin(), graph.initializers.end(),
                     [&](const TensorData& tensor) { return tensor.name == name; });
}

struct Operator {
  std::string domain;
  std::string op_type;
  int64_t version = 0;
  auto operator<=>(const Operator&) const = default;
};

void count_operators(const Graph& graph, std::map<Operator, int64_t>& counts, int64_t& nodes) {
  for (const Node& node : graph.nodes) {
    ++nodes;
    ++counts[{node.domain, node.op_type, node.version}];
    for (const Attribute& attribute : node.attributes)
      for (const Graph& inner : attribute.graphs) count_operators(inner, counts, nodes);
  }
}

void write_header(JsonWriter& json, const Model& model) {
  json.begin_object();
  json.key("ir_version").integer(model.ir_version);
  json.key("opset").begin_object();
  for (const OpsetImport& import : model.opset_imports)
    json.key(import.domain).integer(import.version);
  json.end_object();
  std::string producer = model.producer_name;
  if (!model.producer_version.empty())
    producer += (producer.empty() ? "" : " ") + model.producer_version;
  json.key("producer").text(producer);
  json.end_object();
}

void write_ports(JsonWriter& json, const Graph& graph) {
  json.key("inputs").begin_array();
  std::set<std::string> dims;
  for (const ValueInfo& input : graph.inputs) {
    if (is_initializer(graph, input.name)) continue;
    write_port(json, input);
    for (const Dim& dim : input.type.dims)
      if (!dim.is_known() && !dim.name.empty()) dims.insert(dim.name);
  }
  json.end_array();
  json.key("outputs").begin_array();
  for (const ValueInfo& output : graph.outputs) write_port(json, output);
  json.end_array();
  json.key("dims").begin_array();
  for (const std::string& dim : dims) json.text(dim);
  json.end_array();
}

void write_operators(JsonWriter& json, const Graph& graph, const CustomOps& custom_ops) {
  std::map<Operator, int64_t> counts;
  int64_t nodes = 0;
  count_operators(graph, counts, nodes);
  json.key("operators").begin_array();
  for (const auto& [op, count] : counts) {
    json.begin_object().key("domain").text(op.domain).key("op").text(op.op_type);
    json.key("version").integer(op.version).key("count").integer(count);
    json.key("supported")
        .boolean(find_row(op.domain, op.op_type, op.version) ||
                 custom_ops.find(op.domain, op.op_type));
    json.end_object();
  }
  json.end_array();
  json.key("nodes").integer(nodes);
}

void write_initializers(JsonWriter& json, const Graph& graph) {
  int64_t bytes = 0;
  std::set<std::string> files;
  for (const TensorData& tensor : graph.initializers) {
    bytes += tensor.bytes.size();
    if (!tensor.location.empty()) files.insert(tensor.location);
  }
  json.key("initializers").begin_object();
  json.key("count").integer(static_cast<int64_t>(graph.initializers.size()));
  json.key("bytes").integer(bytes).key("external").begin_array();
  for (const std::string& file : files) json.text(file);
  json.end_array().end_object();
}

void write_unsupported(JsonWriter& json, const std::vector<UnsupportedNode>& unsupported) {
  json.key("unsupported").begin_array();
  for (const UnsupportedNode& node : unsupported) {
    json.begin_object().key("node").text(node.node).key("domain").text(node.domain);
    json.key("op").text(node.op_type).key("version").integer(node.version);
    json.key("dtypes").begin_array();
    for (const std::string& dtype : node.dtypes) json.text(dtype);
    json.end_array().key("reason").text(node.reason).end_object();
  }
  json.end_array();
  json.key("supported").boolean(unsupported.empty());
}

}  // namespace

std::string header_json(const Model& model) {
  JsonWriter json;
  write_header(json, model);
  return json.result();
}

std::string info_json(const Model& model, const std::vector<UnsupportedNode>& unsupported,
                      std::optional<double> operations, const CustomOps& custom_ops) {
  JsonWriter json;
  json.begin_object();
  write_header(json.key("model"), model);
  write_ports(json, model.graph);
  write_operators(json, model.graph, custom_ops);
  write_initializers(json, model.graph);
  write_unsupported(json, unsupported);
  json.key("flops");
  if (operations)
    json.real(*operations);
  else
    json.null();
  json.key("metadata").begin_object();
  for (const auto& [key, value] : model.metadata) json.key(key).text(value);
  json.end_object().end_object();
  return json.result();
}

}  // namespace tiny::onnx
