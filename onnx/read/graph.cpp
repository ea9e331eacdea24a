#include "onnx/read/graph.h"

#include <algorithm>
#include <string_view>

#include "onnx/read/attribute.h"
#include "onnx/read/structure.h"
#include "onnx/read/value_type.h"

namespace tiny::onnx {

namespace {

std::string domain_name(WireReader& r) {
  std::string name = r.name();
  return name == "ai.onnx" ? std::string() : name;
}

Node read_node(WireReader& r, const TensorSource& source, int64_t depth) {
  namespace f = field::NodeProto;
  r.budget().charge_nodes(1);
  Node node;
  while (r.next()) {
    switch (r.field()) {
      case f::input:
        append_name(r, node.inputs);
        break;
      case f::output:
        append_name(r, node.outputs);
        break;
      case f::name:
        node.name = r.name();
        break;
      case f::op_type:
        node.op_type = r.name();
        break;
      case f::domain:
        node.domain = domain_name(r);
        break;
      case f::overload:
        node.overload = r.name();
        break;
      case f::attribute: {
        WireReader child = r.message(ProtoMessage::AttributeProto, node.attributes.size());
        append(r, node.attributes, read_attribute(child, source, depth));
        break;
      }
      default:
        break;
    }
  }
  r.check(!node.op_type.empty(), "a node without an op_type");
  std::vector<std::string_view> names;
  for (const Attribute& a : node.attributes) names.push_back(a.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) r.check(false, "the attribute \"", *twice, "\" stands twice");
  return node;
}

}  // namespace

OpsetImport read_opset(WireReader& r) {
  OpsetImport import;
  while (r.next()) {
    if (r.field() == field::OperatorSetIdProto::domain) import.domain = domain_name(r);
    if (r.field() == field::OperatorSetIdProto::version) import.version = r.integer();
  }
  return import;
}

Graph read_graph(WireReader& r, const TensorSource& source, int64_t depth) {
  namespace f = field::GraphProto;
  check_depth(r, depth);
  Graph graph;
  const auto value = [&](std::vector<ValueInfo>& list) {
    WireReader child = r.message(ProtoMessage::ValueInfoProto, list.size());
    append(r, list, read_value_info(child));
  };
  while (r.next()) {
    switch (r.field()) {
      case f::node: {
        WireReader child = r.message(ProtoMessage::NodeProto, graph.nodes.size());
        append(r, graph.nodes, read_node(child, source, depth));
        break;
      }
      case f::name:
        graph.name = r.name();
        break;
      case f::initializer: {
        WireReader child = r.message(ProtoMessage::TensorProto, graph.initializers.size());
        append(r, graph.initializers, read_tensor(child, source));
        break;
      }
      case f::sparse_initializer: {
        WireReader child = r.message(ProtoMessage::SparseTensorProto);
        append(r, graph.initializers, read_sparse_tensor(child, source));
        break;
      }
      case f::input:
        value(graph.inputs);
        break;
      case f::output:
        value(graph.outputs);
        break;
      case f::value_info:
        value(graph.value_infos);
        break;
      default:
        break;
    }
  }
  return graph;
}

Function read_function(WireReader& r, const TensorSource& source) {
  namespace f = field::FunctionProto;
  Function function;
  while (r.next()) {
    switch (r.field()) {
      case f::name:
        function.name = r.name();
        break;
      case f::domain:
        function.domain = domain_name(r);
        break;
      case f::overload:
        function.overload = r.name();
        break;
      case f::input:
        append_name(r, function.inputs);
        break;
      case f::output:
        append_name(r, function.outputs);
        break;
      case f::attribute:
        append_name(r, function.attributes);
        break;
      case f::attribute_proto: {
        WireReader child = r.message(ProtoMessage::AttributeProto, function.defaults.size());
        append(r, function.defaults, read_attribute(child, source, 1));
        break;
      }
      case f::node: {
        WireReader child = r.message(ProtoMessage::NodeProto, function.nodes.size());
        append(r, function.nodes, read_node(child, source, 1));
        break;
      }
      case f::opset_import: {
        WireReader child =
            r.message(ProtoMessage::OperatorSetIdProto, function.opset_imports.size());
        append(r, function.opset_imports, read_opset(child));
        break;
      }
      default:
        break;
    }
  }
  r.check(!function.name.empty(), "a function without a name");
  return function;
}

}  // namespace tiny::onnx
