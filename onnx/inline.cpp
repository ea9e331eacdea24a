#include "onnx/inline.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

namespace tiny::onnx {

namespace {

// The names of one scope of a function's body and what they are called after inlining.
struct Renames {
  const Renames* outer = nullptr;
  std::map<std::string_view, std::string> names;

  const std::string* find(std::string_view name) const {
    for (const Renames* scope = this; scope; scope = scope->outer) {
      const auto at = scope->names.find(name);
      if (at != scope->names.end()) return &at->second;
    }
    return nullptr;
  }
};

// What the names that inlining makes begin with.
constexpr std::string_view kPrefix = "call_";

// The names of a graph and the graphs inside it that a made one could equal, into `names`.
void collect_names(const Graph& graph, std::vector<std::string>& names) {
  const auto add = [&](const std::string& name) {
    if (name.starts_with(kPrefix)) names.push_back(name);
  };
  for (const ValueInfo& input : graph.inputs) add(input.name);
  for (const TensorData& tensor : graph.initializers) add(tensor.name);
  for (const Node& node : graph.nodes) {
    for (const std::string& output : node.outputs) add(output);
    for (const Attribute& attribute : node.attributes)
      for (const Graph& inner : attribute.graphs) collect_names(inner, names);
  }
}

// What a copy of the node costs in memory; a subgraph's nodes are counted when they are copied.
int64_t cost_of(const Node& node) {
  size_t bytes = sizeof(Node) + node.name.size();
  for (const std::string& name : node.inputs) bytes += sizeof(name) + name.size();
  for (const std::string& name : node.outputs) bytes += sizeof(name) + name.size();
  for (const Attribute& a : node.attributes) {
    bytes += sizeof(a) + a.s.size() + a.floats.size() * 4 + a.ints.size() * 8;
    for (const std::string& s : a.strings) bytes += sizeof(s) + s.size();
    for (const TensorData& t : a.tensors) {
      bytes += sizeof(t) + t.dims.size() * 8;
      for (const std::string& s : t.strings) bytes += sizeof(s) + s.size();
    }
  }
  return static_cast<int64_t>(bytes);
}

class Inliner {
 public:
  // Takes the model's functions.
  Inliner(Model& model, const Limits& limits)
      : list_(std::move(model.functions)),
        opset_imports_(model.opset_imports),
        budget_{.limits = limits} {
    for (const Function& f : list_) functions_.emplace(key_of(f), &f);
    collect_names(model.graph, taken_);
    std::sort(taken_.begin(), taken_.end());
  }

  // Expands the calls in a graph and the graphs inside it; it stands `depth` graphs and `calls`
  // calls deep.
  void expand(Graph& graph, int64_t depth, int64_t calls);

 private:
  // A node still to be looked at, and how many calls it stands inside.
  struct Pending {
    Node node;
    int64_t calls;
  };

  std::vector<Node> body(const Function& function, const Node& call);
  Node instantiate(const Node& node, const Function& function, const Node& call,
                   const Renames& names, const std::string& prefix, int64_t depth);
  Graph instantiate(const Graph& graph, const Function& function, const Node& call,
                    const Renames& outer, const std::string& prefix, int64_t depth);
  std::optional<Attribute> resolve(const Attribute& attribute, const Function& function,
                                   const Node& call) const;
  Node identity(const std::string& input, const std::string& output, const Function& function);
  void check_depth(int64_t depth, const char* what) const;
  std::string fresh_prefix(const Function& function);

  const std::vector<Function> list_;
  const std::vector<OpsetImport>& opset_imports_;
  Budget budget_;
  std::map<FunctionKey, const Function*> functions_;
  std::vector<std::string> taken_;
  int64_t calls_ = 0;
};

void Inliner::check_depth(int64_t depth, const char* what) const {
  require(depth <= budget_.limits.subgraph_depth, Status::Limit, what,
          " nested deeper than subgraph_depth = ", budget_.limits.subgraph_depth,
          raise_hint("subgraph_depth"));
}

// A prefix that no name of the model starts with, another one for each call.
std::string Inliner::fresh_prefix(const Function& function) {
  while (true) {
    const std::string prefix = cat(kPrefix, ++calls_, "/");
    const auto at = std::lower_bound(taken_.begin(), taken_.end(), prefix);
    if (at == taken_.end() || !at->starts_with(prefix)) return prefix + function.name + "/";
  }
}

void Inliner::expand(Graph& graph, int64_t depth, int64_t calls) {
  check_depth(depth, "graphs");
  std::vector<Pending> pending;
  for (size_t i = graph.nodes.size(); i-- > 0;)
    pending.push_back({std::move(graph.nodes[i]), calls});
  graph.nodes.clear();
  while (!pending.empty()) {
    Pending next = std::move(pending.back());
    pending.pop_back();
    const auto at = functions_.find(key_of(next.node));
    if (at == functions_.end()) {
      budget_.charge_nodes(1);
      for (Attribute& attribute : next.node.attributes)
        for (Graph& inner : attribute.graphs) expand(inner, depth + 1, next.calls);
      graph.nodes.push_back(std::move(next.node));
      continue;
    }
    const Function& function = *at->second;
    require(next.calls < static_cast<int64_t>(list_.size()), Status::InvalidModel, "function ",
            function.name, " calls itself");
    check_depth(next.calls + 1, "function calls");
    std::vector<Node> nodes = body(function, next.node);
    // Calls that are still to be expanded are nodes as well: they bound what `pending` holds.
    require(static_cast<int64_t>(pending.size() + nodes.size()) <= budget_.limits.nodes,
            Status::Limit, "more than nodes = ", budget_.limits.nodes,
            " nodes when functions are inlined", raise_hint("nodes"));
    for (size_t i = nodes.size(); i-- > 0;)
      pending.push_back({std::move(nodes[i]), next.calls + 1});
  }
}

Node Inliner::identity(const std::string& input, const std::string& output,
                       const Function& function) {
  require(!input.empty(), Status::InvalidModel, "function ", function.name,
          " passes an input through that a call leaves out");
  Node node;
  node.op_type = "Identity";
  for (const auto* imports : {&opset_imports_, &function.opset_imports})
    for (const OpsetImport& import : *imports)
      if (import.domain.empty()) node.version = import.version;
  require(node.version > 0, Status::InvalidModel, "function ", function.name,
          " passes an input through, but imports no operator set that has Identity");
  node.inputs = {input};
  node.outputs = {output};
  return node;
}

std::vector<Node> Inliner::body(const Function& function, const Node& call) {
  require(call.inputs.size() <= function.inputs.size() &&
              call.outputs.size() <= function.outputs.size(),
          Status::InvalidModel, describe(call), " has ", call.inputs.size(), " inputs and ",
          call.outputs.size(), " outputs, its function takes ", function.inputs.size(),
          " and makes ", function.outputs.size());
  const std::string prefix = fresh_prefix(function);
  Renames names;
  for (size_t i = 0; i < function.inputs.size(); ++i)
    names.names[function.inputs[i]] = i < call.inputs.size() ? call.inputs[i] : std::string();
  std::vector<Node> copies;
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    if (call.outputs[i].empty()) continue;
    const auto [at, is_new] = names.names.emplace(function.outputs[i], call.outputs[i]);
    // The output is one of the inputs, or an output that has a name already.
    if (!is_new) copies.push_back(identity(at->second, call.outputs[i], function));
  }
  const auto inner_name = [&](const std::string& name) {
    if (!name.empty()) names.names.try_emplace(name, prefix + name);
  };
  for (const Node& node : function.nodes)
    for (const std::string& output : node.outputs) inner_name(output);
  std::vector<Node> nodes;
  nodes.reserve(function.nodes.size() + copies.size());
  for (const Node& node : function.nodes)
    nodes.push_back(instantiate(node, function, call, names, prefix, 1));
  for (Node& copy : copies) nodes.push_back(std::move(copy));
  return nodes;
}

std::string renamed(const Renames& names, const std::string& name) {
  if (name.empty()) return name;
  const std::string* now = names.find(name);
  invariant(now != nullptr, "a function's names were checked");
  return *now;
}

std::optional<Attribute> Inliner::resolve(const Attribute& attribute, const Function& function,
                                          const Node& call) const {
  if (attribute.ref_attr_name.empty()) return attribute;
  const Attribute* value = call.attribute(attribute.ref_attr_name);
  for (size_t i = 0; !value && i < function.defaults.size(); ++i)
    if (function.defaults[i].name == attribute.ref_attr_name) value = &function.defaults[i];
  if (!value) return std::nullopt;  // left out by the caller: the operator's own default holds
  require(attribute.type == AttributeType::Undefined || attribute.type == value->type,
          Status::InvalidModel, describe(call), ": attribute \"", value->name, "\" is of type ",
          to_string(value->type), ", the function wants ", to_string(attribute.type));
  Attribute copy = *value;
  copy.name = attribute.name;
  return copy;
}

Node Inliner::instantiate(const Node& node, const Function& function, const Node& call,
                          const Renames& names, const std::string& prefix, int64_t depth) {
  budget_.charge_structure(cost_of(node) + static_cast<int64_t>(prefix.size()),
                           "inlined functions");
  Node copy;
  copy.op_type = node.op_type;
  copy.domain = node.domain;
  copy.overload = node.overload;
  copy.version = node.version;
  if (!node.name.empty()) copy.name = prefix + node.name;
  for (const std::string& name : node.inputs) copy.inputs.push_back(renamed(names, name));
  for (const std::string& name : node.outputs) copy.outputs.push_back(renamed(names, name));
  for (const Attribute& attribute : node.attributes) {
    std::optional<Attribute> value = resolve(attribute, function, call);
    if (!value) continue;
    // A graph that comes with the call sees the caller's names, not the function's.
    if (attribute.ref_attr_name.empty())
      for (Graph& graph : value->graphs)
        graph = instantiate(graph, function, call, names, prefix, depth + 1);
    copy.attributes.push_back(std::move(*value));
  }
  return copy;
}

Graph Inliner::instantiate(const Graph& graph, const Function& function, const Node& call,
                           const Renames& outer, const std::string& prefix, int64_t depth) {
  check_depth(depth, "graphs");
  Renames names{.outer = &outer, .names = {}};
  const auto inner_name = [&](const std::string& name) {
    if (!name.empty()) names.names.try_emplace(name, prefix + name);
  };
  for (const ValueInfo& input : graph.inputs) inner_name(input.name);
  for (const TensorData& tensor : graph.initializers) inner_name(tensor.name);
  for (const Node& node : graph.nodes)
    for (const std::string& output : node.outputs) inner_name(output);
  Graph copy;
  copy.name = graph.name;
  const auto rename_values = [&](const std::vector<ValueInfo>& from, std::vector<ValueInfo>& to) {
    for (const ValueInfo& value : from) to.push_back({renamed(names, value.name), value.type});
  };
  rename_values(graph.inputs, copy.inputs);
  rename_values(graph.outputs, copy.outputs);
  for (const TensorData& tensor : graph.initializers) {
    copy.initializers.push_back(tensor);
    copy.initializers.back().name = renamed(names, tensor.name);
  }
  for (const Node& node : graph.nodes)
    copy.nodes.push_back(instantiate(node, function, call, names, prefix, depth));
  return copy;
}

}  // namespace

void inline_functions(Model& model, const Limits& limits) {
  if (model.functions.empty()) return;
  Inliner(model, limits).expand(model.graph, 1, 0);
  model.functions.clear();
}

}  // namespace tiny::onnx
