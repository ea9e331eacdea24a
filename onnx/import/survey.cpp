#include "onnx/import/survey.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "onnx/import/narrow.h"
#include "onnx/import/table.h"

namespace tiny::onnx {

std::string label_of(const Node& node) {
  if (!node.name.empty()) return node.name;
  for (const std::string& output : node.outputs)
    if (!output.empty()) return output;
  return "";
}

bool is_known(const CustomOps& custom_ops, const Node& node) {
  return find_row(node.domain, node.op_type, node.version) ||
         custom_ops.find(node.domain, node.op_type);
}

std::string missing_row(const Node& node) {
  const std::string versions = supported_versions(node.domain, node.op_type);
  if (versions.empty()) return "the operator is not supported";
  return cat("version ", node.version, " of the operator set is not supported (versions ", versions,
             " are)");
}

namespace {

// Element types by name, as the file declares them.
using Types = std::map<std::string_view, int32_t>;

void declare(const Graph& graph, Types& types) {
  for (const auto* list : {&graph.inputs, &graph.value_infos, &graph.outputs})
    for (const ValueInfo& info : *list) types[info.name] = info.type.elem_type;
  for (const TensorData& tensor : graph.initializers) types[tensor.name] = tensor.type;
}

bool is_ours(int32_t type) {
  const TensorTypeInfo* info = tensor_type(type);
  return info && info->ours != ScalarType::Void;
}

void look_at(const Graph& graph, Types types, const CustomOps& custom_ops,
             std::vector<UnsupportedNode>& out) {
  declare(graph, types);
  for (const Node& node : graph.nodes) {
    std::vector<std::string> dtypes;
    std::string reason;
    if (!is_known(custom_ops, node)) reason = missing_row(node);
    for (const auto* names : {&node.inputs, &node.outputs})
      for (const std::string& name : *names) {
        const auto at = types.find(name);
        const int32_t type = at == types.end() ? 0 : at->second;
        if (names == &node.inputs && !name.empty())
          dtypes.push_back(type == 0       ? "?"
                           : is_ours(type) ? tiny::to_string(DType(tensor_type(type)->ours))
                                           : tensor_type_name(type));
        if (reason.empty() && type != 0 && !is_ours(type) && !takes_carried(node, type))
          reason = cat("the element type ", tensor_type_name(type), " is not supported");
      }
    if (!reason.empty())
      out.push_back(
          {label_of(node), node.domain, node.op_type, node.version, std::move(dtypes), reason});
    for (const Attribute& attribute : node.attributes)
      for (const Graph& inner : attribute.graphs) look_at(inner, types, custom_ops, out);
  }
}

bool any_of_them(const std::vector<std::string>& wanted, const std::set<std::string_view>& names) {
  return std::any_of(wanted.begin(), wanted.end(), [&](const std::string& name) {
    return !name.empty() && names.contains(name);
  });
}

// Adds the names whose elements must be known so that the nodes can be imported.
void demand(const Graph& graph, std::set<std::string_view>& names) {
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    const Node& node = graph.nodes[i];
    for (const Attribute& attribute : node.attributes)
      for (const Graph& inner : attribute.graphs) {
        for (const ValueInfo& output : inner.outputs)
          if (any_of_them(node.outputs, names)) names.insert(output.name);
        demand(inner, names);
        for (const ValueInfo& input : inner.inputs)
          if (names.contains(input.name)) names.insert(node.inputs.begin(), node.inputs.end());
      }
    const Row* row = find_row(node.domain, node.op_type, node.version);
    if (!row) continue;
    const bool of_shape = node.op_type == "Shape" || node.op_type == "Size";
    const bool wanted = !of_shape && any_of_them(node.outputs, names);
    for (size_t k = 0; k < node.inputs.size(); ++k)
      if (wanted || (k < 32 && ((row->host_operands >> k) & 1) != 0)) names.insert(node.inputs[k]);
  }
}

}  // namespace

std::vector<UnsupportedNode> find_unsupported(const Model& model, const CustomOps& custom_ops) {
  std::vector<UnsupportedNode> out;
  look_at(model.graph, {}, custom_ops, out);
  return out;
}

void throw_unsupported(const std::vector<UnsupportedNode>& nodes) {
  std::vector<std::string> lines;
  for (const UnsupportedNode& n : nodes)
    lines.push_back(cat(n.domain, n.domain.empty() ? "" : ".", n.op_type, "-", n.version, "(",
                        join(n.dtypes, ", "), ") at \"", n.node, "\": ", n.reason));
  throw Error(Status::Unsupported, cat(nodes.size(), nodes.size() == 1 ? " node is" : " nodes are",
                                       " not supported: ", join(lines, "; ")))
      .in_node(nodes.front().node);
}

std::vector<size_t> host_input_candidates(const Model& model, const std::vector<size_t>& inputs) {
  std::set<std::string_view> names;
  demand(model.graph, names);
  std::vector<size_t> out;
  for (size_t i : inputs)
    if (names.contains(model.graph.inputs[i].name)) out.push_back(i);
  return out;
}

}  // namespace tiny::onnx
