#include "onnx/check.h"

#include <algorithm>
#include <queue>
#include <string_view>
#include <utility>

namespace tiny::onnx {

namespace {

constexpr int64_t kGiven = -1;    // an input or initializer: there before the first node
constexpr int64_t kUnknown = -2;  // not defined in this graph

// Who defines each name of one graph.  Sorted rather than hashed: the names are untrusted.
class Names {
 public:
  void add(std::string_view name, int64_t definer) { entries_.emplace_back(name, definer); }

  // To be called once, after the last add.  An initializer may give an input its default, so two
  // definitions with kGiven are one; `add` is not told of duplicates among inputs.
  void settle(const std::vector<Node>& nodes) {
    std::sort(entries_.begin(), entries_.end());
    for (size_t i = 1; i < entries_.size(); ++i) {
      const auto& [name, definer] = entries_[i];
      const bool twice = name == entries_[i - 1].first && definer != kGiven;
      require(!twice, Status::InvalidModel, "value \"", name, "\" is defined twice, by ",
              text(nodes, entries_[i - 1].second), " and by ", text(nodes, definer));
    }
  }

  int64_t definer(std::string_view name) const {
    const auto at = std::lower_bound(
        entries_.begin(), entries_.end(), name,
        [](const auto& entry, std::string_view wanted) { return entry.first < wanted; });
    return at == entries_.end() || at->first != name ? kUnknown : at->second;
  }

 private:
  static std::string text(const std::vector<Node>& nodes, int64_t definer) {
    return definer == kGiven ? "the graph's inputs or initializers"
                             : describe(nodes[static_cast<size_t>(definer)]);
  }

  std::vector<std::pair<std::string_view, int64_t>> entries_;
};

// A name that a subgraph takes from a graph around it.
struct Free {
  const std::string* name;
  const Node* node;  // that uses it; null for a graph output
};

std::string user_of(const Free& use) {
  return use.node ? describe(*use.node) : "a graph output";
}

[[noreturn]] void refuse_nameless(const char* what, size_t index, const std::string& where) {
  throw_error(Status::InvalidModel, what, " ", index, " of ", where, " has no name");
}

// Every list of names must be free of duplicates by itself.  `where` is the graph or function.
template <class T, class NameOf>
void require_distinct(const std::vector<T>& items, NameOf name_of, const char* what,
                      const std::string& where) {
  std::vector<std::string_view> names;
  names.reserve(items.size());
  for (const T& item : items) {
    names.push_back(name_of(item));
    if (names.back().empty()) refuse_nameless(what, names.size() - 1, where);
  }
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  require(twice == names.end(), Status::InvalidModel, what, " \"",
          twice == names.end() ? std::string_view() : *twice, "\" stands twice");
}

// The nodes of one list with what each needs from the others.
class Sorter {
 public:
  Sorter(std::vector<Node>& nodes, const Names& names) : nodes_(nodes), needs_(nodes.size()) {
    for (size_t i = 0; i < nodes.size(); ++i) collect(i, names);
  }

  // Brings the nodes into order and returns the names that no node of the list defines.
  std::vector<Free> sort();

 private:
  void collect(size_t i, const Names& names);
  std::vector<size_t> order() const;
  [[noreturn]] void refuse_cycle(const std::vector<size_t>& open) const;

  struct Needs {
    std::vector<size_t> nodes;         // defined by these
    std::vector<size_t> inputs;        // of the node: defined further out
    std::vector<Free> from_subgraphs;  // defined further out
  };
  std::vector<Node>& nodes_;
  std::vector<Needs> needs_;
  bool in_order_ = true;
};

std::vector<Free> check_graph(Graph& graph);

void Sorter::collect(size_t i, const Names& names) {
  Node& node = nodes_[i];
  Needs& needs = needs_[i];
  const auto need = [&](int64_t definer) {
    if (definer < 0) return;
    needs.nodes.push_back(static_cast<size_t>(definer));
    in_order_ = in_order_ && static_cast<size_t>(definer) < i;
  };
  for (size_t k = 0; k < node.inputs.size(); ++k) {
    if (node.inputs[k].empty()) continue;
    const int64_t definer = names.definer(node.inputs[k]);
    if (definer == kUnknown) needs.inputs.push_back(k);
    need(definer);
  }
  for (Attribute& attribute : node.attributes)
    for (Graph& subgraph : attribute.graphs)
      for (const Free& use : check_graph(subgraph)) {
        const int64_t definer = names.definer(*use.name);
        if (definer == kUnknown) needs.from_subgraphs.push_back(use);
        need(definer);
      }
}

// The earliest node that is ready comes next, so that a list in order stays as it is.
std::vector<size_t> Sorter::order() const {
  std::vector<std::vector<size_t>> users(nodes_.size());
  std::vector<size_t> missing(nodes_.size());
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    for (size_t definer : needs_[i].nodes) users[definer].push_back(i);
    missing[i] = needs_[i].nodes.size();
    if (missing[i] == 0) ready.push(i);
  }
  std::vector<size_t> order;
  order.reserve(nodes_.size());
  while (!ready.empty()) {
    const size_t next = ready.top();
    ready.pop();
    order.push_back(next);
    for (size_t user : users[next])
      if (--missing[user] == 0) ready.push(user);
  }
  if (order.size() < nodes_.size()) refuse_cycle(missing);
  return order;
}

void Sorter::refuse_cycle(const std::vector<size_t>& missing) const {
  // Every node left needs another one left: walking back must come around.
  const auto is_open = [&](size_t i) { return missing[i] > 0; };
  size_t at = 0;
  while (!is_open(at)) ++at;
  std::vector<size_t> path;
  std::vector<bool> seen(nodes_.size());
  while (!seen[at]) {
    seen[at] = true;
    path.push_back(at);
    at = *std::find_if(needs_[at].nodes.begin(), needs_[at].nodes.end(), is_open);
  }
  path.erase(path.begin(), std::find(path.begin(), path.end(), at));
  constexpr size_t kMostNamed = 8;
  std::vector<std::string> names;
  for (size_t i = path.size(); i-- > 0 && names.size() < kMostNamed;)
    names.push_back(describe(nodes_[path[i]]));
  if (path.size() > kMostNamed) names.push_back(cat(path.size() - kMostNamed, " more"));
  throw_error(Status::InvalidModel, "the nodes form a cycle: " + join(names, " -> "));
}

std::vector<Free> Sorter::sort() {
  if (!in_order_) {
    const std::vector<size_t> places = order();
    std::vector<Node> sorted;
    std::vector<Needs> needs;
    sorted.reserve(places.size());
    needs.reserve(places.size());
    for (size_t i : places) {
      sorted.push_back(std::move(nodes_[i]));
      needs.push_back(std::move(needs_[i]));
    }
    nodes_ = std::move(sorted);
    needs_ = std::move(needs);
  }
  std::vector<Free> free;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    for (size_t k : needs_[i].inputs) free.push_back({&nodes_[i].inputs[k], &nodes_[i]});
    free.insert(free.end(), needs_[i].from_subgraphs.begin(), needs_[i].from_subgraphs.end());
  }
  return free;
}

void add_outputs(Names& names, const std::vector<Node>& nodes) {
  for (size_t i = 0; i < nodes.size(); ++i)
    for (const std::string& output : nodes[i].outputs)
      if (!output.empty()) names.add(output, static_cast<int64_t>(i));
}

// Checks and sorts a graph and those inside it, as deep on the stack as they nest; returns what it
// takes from outside.  The result points into the graph.
std::vector<Free> check_graph(Graph& graph) {
  const std::string where = cat("graph \"", graph.name, "\"");
  const auto named = [](const auto& v) { return std::string_view(v.name); };
  require_distinct(graph.inputs, named, "graph input", where);
  require_distinct(graph.initializers, named, "initializer", where);
  Names names;
  for (const ValueInfo& input : graph.inputs) names.add(input.name, kGiven);
  for (const TensorData& tensor : graph.initializers) names.add(tensor.name, kGiven);
  add_outputs(names, graph.nodes);
  names.settle(graph.nodes);
  std::vector<const std::string*> outer_outputs;
  for (const ValueInfo& output : graph.outputs) {
    if (output.name.empty())
      refuse_nameless("graph output", static_cast<size_t>(&output - graph.outputs.data()), where);
    if (names.definer(output.name) == kUnknown) outer_outputs.push_back(&output.name);
  }
  std::vector<Free> free = Sorter(graph.nodes, names).sort();
  for (const std::string* name : outer_outputs) free.push_back({name, nullptr});
  return free;
}

void check_function(Function& function) {
  const auto itself = [](const std::string& name) { return std::string_view(name); };
  require_distinct(function.inputs, itself, "function input",
                   cat("function \"", function.name, "\""));
  Names names;
  for (const std::string& input : function.inputs) names.add(input, kGiven);
  add_outputs(names, function.nodes);
  names.settle(function.nodes);
  for (const std::string& output : function.outputs)
    require(names.definer(output) != kUnknown, Status::InvalidModel, "no node makes the output \"",
            output, "\" of function ", function.name);
  const std::vector<Free> free = Sorter(function.nodes, names).sort();
  if (!free.empty())
    throw_error(Status::InvalidModel, user_of(free[0]), " in function ", function.name, " uses \"",
                *free[0].name, "\", which nobody defines");
}

// References to a call's attributes make sense in functions only.
void refuse_references(const std::vector<Node>& nodes) {
  for (const Node& node : nodes)
    for (const Attribute& attribute : node.attributes) {
      if (!attribute.ref_attr_name.empty())
        throw_error(Status::InvalidModel, describe(node), " refers to the attribute \"",
                    attribute.ref_attr_name, "\" outside of a function");
      for (const Graph& graph : attribute.graphs) refuse_references(graph.nodes);
    }
}

}  // namespace

void check_and_sort(Model& model) {
  refuse_references(model.graph.nodes);
  const std::vector<Free> free = check_graph(model.graph);
  if (!free.empty())
    throw_error(Status::InvalidModel,
                free[0].node ? cat(describe(*free[0].node), " uses \"", *free[0].name,
                                   "\", which nobody defines")
                             : cat("no node makes the graph output \"", *free[0].name, "\""));
  std::vector<FunctionKey> keys;
  for (const Function& function : model.functions) keys.push_back(key_of(function));
  std::sort(keys.begin(), keys.end());
  const auto twice = std::adjacent_find(keys.begin(), keys.end());
  if (twice != keys.end())
    throw_error(Status::InvalidModel, "function ", std::get<0>(*twice), " of domain \"",
                std::get<1>(*twice), "\" is defined twice");
  for (Function& function : model.functions) check_function(function);
}

}  // namespace tiny::onnx
