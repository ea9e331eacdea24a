// From an ONNX graph to a tensor graph.
//
// Nodes are imported in order, each by its row of the tables.  What follows from initializers and
// shapes alone is computed on the host on the way, so that shape arithmetic leaves no nodes.  A
// node that cannot be imported is noted, what depends on it is passed over, and all of them are
// reported together.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/storage.h"
#include "ir/bounds.h"
#include "ir/open_size.h"
#include "onnx/import/call.h"
#include "onnx/import/questions.h"
#include "onnx/import/survey.h"
#include "onnx/model.h"
#include "onnx/texts.h"
#include "schedule/computed_variable.h"
#include "tensor/dependence.h"

namespace tiny::onnx {

// Results of at most this many elements are computed on the host.
inline constexpr int64_t kFoldedMax = 1024;

// A model's weights as memory of the device: in place in the mapped file, at whatever address, but
// for small ones that are not aligned to vectors, which are copied.  Shared by all programs of a
// model; holds no nodes.
class Weights {
 public:
  Ref<Storage> storage(Context& context, const HostTensor& tensor);

 private:
  std::map<const std::byte*, Ref<Storage>> storages_;
};

// Thrown where the kind of what a branch makes cannot be asked: what follows in its graph is made
// for each of the two.
struct Forked {
  const Node* node = nullptr;
  Tensor condition;  // bool, no axes
};

// An input of the graph.
struct ImportInput {
  std::string name;
  Value value;                      // of the program's inputs
  std::optional<HostTensor> known;  // the tensor's elements, where shapes depend on them
};

// What profiles call the nodes of a model: by their names, or operator and first output; what is in
// the graph of a node stands behind that node's, "loop1/add2".  The origin of each graph's first
// node; those of its others follow.
using GraphOrigins = std::unordered_map<const Graph*, Origin>;
GraphOrigins add_origins(Origins& origins, const Graph& graph);

class Importer {
 public:
  // `origins` (may be null) of the graph that is imported; they outlive this.
  Importer(Ref<Context> context, Weights& weights, const GraphOrigins* origins = nullptr)
      : context_(std::move(context)), weights_(weights), origins_(origins) {}

  // The graph's outputs.  Error{Unsupported} that lists every node that cannot be imported.
  Values import(const Graph& graph, const std::vector<ImportInput>& inputs);

  // The outputs of one node, which is in no graph.
  Tensors apply(const Node& node, std::vector<Value> inputs);

  // For Call.
  const Value* find(std::string_view name);    // in the graphs around; null: none has been made
  bool is_alone() const { return is_alone_; }  // the node is in no graph
  const Ref<Context>& context() const { return context_; }
  Value constant(const HostTensor& tensor);
  Value constant(const TensorData& tensor);
  HostTensor host_value_of(const Tensor& tensor, const std::string& what);
  // `found` makes sizes of the elements that inputs decide, by their places.
  Shape host_sizes_of(const Tensor& tensor, const std::string& what, const FoundSize& found);
  Values subgraph(const Graph& graph, const Values& inputs);
  // Whether `make` has made what it is to; else `failure` says why not, and nothing is noted.
  bool attempt(const std::function<void()>& make, std::string& failure);
  // The same of what is computed where the condition (bool, one element) holds.
  bool attempt_if(const Tensor& condition, const std::function<void()>& make, std::string& failure);
  // Whether the graphs around are computed (bool, one element); none if they are in any case.
  const Tensor& guard() const { return guard_; }
  // A size that the run computes: `count` (int64, one element), from `least` to `most`; `node` is
  // whose.  A number where no input's elements decide it; Error{Unsupported} where none can be
  // computed.
  tiny::Dim computed_size(const Tensor& count, const tiny::Dim& most, const Node& node,
                          int64_t least = 0);
  // The Variable of a loop that sizes of its body are made of, in this range in all rounds.
  UOp induction_variable(const Node& node, Interval range);
  // The same of one that nothing bounds, or no number that memory is to be for.
  tiny::Dim open_size(const Tensor& count, const Node& node, int64_t most = kOpenSizeMax);
  // The size that both are: of what a run finds it ends with an error about the node if they are
  // not.
  tiny::Dim common_size(const tiny::Dim& a, const tiny::Dim& b, const Node& node);
  // Whether a size is one of these, known by its greatest value before.
  bool is_computed(const tiny::Dim& size) const;
  // Whether there are such in it that nothing bounds.
  bool is_open(const tiny::Dim& size) const;
  // What inputs leave free (FreeDimension) has a program for each value, whose places and weights
  // are known; only what a run finds is computed with.
  void require_found(const Shape& sizes) const;
  // Whether inputs' elements decide it, or such sizes do.
  bool is_decided_by_data(const Tensor& tensor);
  const Dependence& dependence(const Tensor& tensor) { return dependences_.of(tensor.node()); }
  Dependences& dependences() { return dependences_; }

  // The texts of constants; where runs have theirs, if whoever imports can say.
  Texts& texts() { return *text_.constants; }
  const Ref<Texts>& shared_texts() const { return text_.constants; }
  void set_text_table(const Tensor& table) { text_.table = table; }
  Tensor text_table();
  bool asks_texts() const { return text_.is_asked; }

  // What tells one execution from the next, uint32 [4] (ExecutionNumber); without it all that is
  // drawn is that of a first one.  Whether anything was drawn.
  void set_execution(const Tensor& execution) { draws_.execution = execution; }
  bool has_drawn() const { return draws_.count > 0; }
  // The key of numbers for a node of this seed, if it has one.
  Tensor random_key(std::optional<double> seed);
  // What `make` draws is drawn in the round of this number (one integer) of a loop.
  void in_round(const Tensor& number, const std::function<void()>& make);

  // From now on what inputs decide may be asked (Undecided); these are the answers so far.
  void set_decisions(const std::vector<Decision>* decisions) {
    questions_.set_decisions(decisions);
  }
  // Whether it went on without an answer, since nobody could be asked.
  bool has_guessed() const { return questions_.has_guessed(); }
  // The elements of what inputs decide, as a run found them; none if it cannot be asked.
  std::optional<HostTensor> decided(const Tensor& tensor);
  // Which branch of this node what is imported follows (Forked), if it follows one.
  std::optional<bool> followed(const Node& node) const;

  // From now on sizes may be what runs compute: Variables, which whoever makes a program of the
  // graph gives to it.
  void allow_computed_sizes() { sizes_.are_allowed = true; }
  // Induction variables have no value.
  const std::vector<ComputedVariable>& computed_sizes() const { return sizes_.computed; }
  // The nodes that could not be imported so far.
  const std::vector<UnsupportedNode>& unsupported() const { return unsupported_; }

 private:
  // The names of one graph.
  struct Scope {
    std::map<std::string_view, Value> values;
    std::map<std::string_view, const TensorData*> initializers;
    std::map<std::string_view, std::string> missing;  // values of nodes not imported
    bool is_repeated = false;                         // a body, imported for several rounds
  };
  // Where an import can go on after something threw.
  struct Mark {
    size_t scopes, noted, rounds, sizes, follows;
    Tensor guard;
  };
  // The branch of a node that what is imported follows.
  struct Follow {
    const Node* node = nullptr;
    bool is_first = true;
  };

  Mark mark() const;
  void go_back(const Mark& mark);
  bool is_missing(std::string_view name) const;
  void enter(const Graph& graph);
  void nodes(const Graph& graph, size_t first = 0);
  std::optional<Values> outputs_of(const Graph& graph, size_t noted);
  void fork(const Graph& graph, size_t first, const Forked& forked);
  void node(const Node& node);
  void call(const Node& node, std::vector<Value> inputs);
  Tensors results(const Node& node, Call& call);
  Value folded(const Tensor& tensor, bool inputs_known);
  bool may_ask(const Tensor& tensor);
  void ask_size(std::string_view variable);
  tiny::Dim add_size(const Tensor& count, Interval range, bool is_open, const Node& node);
  const ComputedVariable* find_computed(std::string_view variable) const;
  bool are_computed(const std::vector<std::string>& variables) const;
  void note(const Node& node, const std::vector<Value>& inputs, const std::string& reason);

  // Of random numbers.
  struct Draws {
    Tensor execution;
    Tensors rounds;  // of the loops around, the outermost first
    int64_t count = 0;
  };

  // Of sizes that runs compute.
  struct Sizes {
    bool are_allowed = false;
    std::vector<ComputedVariable> computed;
    int64_t induction_variables = 0;  // also of loops that were tried in vain
  };

  struct Text {
    Ref<Texts> constants = make_ref<Texts>();
    Tensor table;
    bool is_asked = false;
  };

  Ref<Context> context_;
  Weights& weights_;
  Text text_;
  Draws draws_;
  bool is_alone_ = false;
  const GraphOrigins* origins_;
  std::vector<Scope> scopes_;
  Tensor guard_;  // whether what is imported is computed; none: in any case
  std::vector<UnsupportedNode> unsupported_;
  std::vector<Follow> follows_;
  int64_t forks_ = 0;
  Sizes sizes_;
  Questions questions_;
  Dependences dependences_;
};

}  // namespace tiny::onnx
