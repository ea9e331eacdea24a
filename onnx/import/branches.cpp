#include "onnx/import/branches.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "engine/custom_op.h"
#include "onnx/import/host_value.h"
#include "onnx/import/import.h"
#include "tensor/control.h"
#include "tensor/create.h"
#include "tensor/custom.h"
#include "tensor/elementwise.h"
#include "tensor/movement.h"

namespace tiny::onnx {

namespace {

// Stands for a branch that cannot be built: taking it is the error.
class RefusedBranch : public CustomOp {
 public:
  RefusedBranch(const Node& node, std::string why, const Tensors& like)
      : CustomOp("", cat(node.op_type, " \"", node.name, "\"")), why_(std::move(why)) {
    for (const Tensor& t : like) values_.push_back({t.dtype(), t.shape(), -1});
  }
  std::vector<HostCall::Value> infer(const std::string&, std::span<const HostCall::Value>,
                                     size_t) const override {
    return values_;
  }
  void run(const RunningCall&) const override {
    throw_error(Status::Unsupported, "the branch that ", name(),
                " takes cannot be computed: ", why_);
  }

 private:
  std::string why_;
  std::vector<HostCall::Value> values_;
};

// What stands for a branch of the outputs `like` that cannot be built.
Values refused_branch(Call& c, const Tensor& condition, const std::string& why,
                      const Values& like) {
  if (!c.importer().dependence(condition).on_steps.empty())
    c.unsupported("its condition depends on a loop's round and a branch cannot be computed: ", why);
  const Tensors tensors = flat(like);
  return formed(like, call_custom(c.context(), make_ref<RefusedBranch>(c.node(), why, tensors),
                                  "{}", {}, tensors.size()));
}

// Makes two values of other sizes ones of the same, the greatest along each axis; returns the sizes
// that they have, which the run computes, or none where these were the same.
Shape fit(Call& c, const Tensor& condition, Tensor& yes, Tensor& no) {
  if (yes.shape() == no.shape()) return {};
  Shape sizes, more_yes, more_no;
  for (size_t k = 0; k < yes.shape().size(); ++k) {
    const tiny::Dim a = yes.shape()[k], b = no.shape()[k];
    const bool is_computed = c.importer().is_computed(a) || c.importer().is_computed(b);
    const bool is_same = is_computed ? a == b : decide_equal(a, b);
    const bool is_open = c.importer().is_open(a) || c.importer().is_open(b);
    const tiny::Dim most = is_same   ? a
                           : is_open ? maximum(a, b)
                                     : tiny::Dim(std::max(upper_bound(a), upper_bound(b)));
    more_yes.push_back(is_same ? tiny::Dim(0) : most - a);
    more_no.push_back(is_same ? tiny::Dim(0) : most - b);
    sizes.push_back(is_same
                        ? a
                        : c.importer().computed_size(where(condition, size_tensor(c.context(), a),
                                                           size_tensor(c.context(), b)),
                                                     most, c.node()));
  }
  const Shape none(sizes.size(), tiny::Dim(0));
  yes = pad(yes, none, more_yes);
  no = pad(no, none, more_no);
  return sizes;
}

// What two branches make, as far as they can be built, and else why not.
struct Branches {
  Tensor condition;  // bool, no axes
  std::optional<Values> yes, no;
  std::string why_not_yes, why_not_no;
};

// Whether a value can be one or the other as the run chooses.
bool are_of_one_form(const Branches& b) {
  return are_alike(*b.yes, *b.no) && are_of_one_kind(flat(*b.yes), flat(*b.no));
}

// Who can ask nobody has what follows for one of them: for that which does less, and so leaves more
// as it is.
void guess(Call& c, Branches& b) {
  if (!are_alike(*b.yes, *b.no))
    c.unsupported("its condition depends on input data and its branches differ in kind or length");
  const bool is_first =
      c.graph_attr("then_branch").nodes.size() < c.graph_attr("else_branch").nodes.size();
  (is_first ? b.why_not_no : b.why_not_yes) =
      "what it makes has not the rank or the type of the other's";
  (is_first ? b.no : b.yes) = std::nullopt;
}

// What the run chooses.  Taking what could not be built is an error.
Values either_of(Call& c, Branches b) {
  if (!b.yes && !b.no) c.unsupported("neither of its branches can be computed: ", b.why_not_yes);
  if (!b.yes) b.yes = refused_branch(c, b.condition, b.why_not_yes, *b.no);
  if (!b.no) b.no = refused_branch(c, b.condition, b.why_not_no, *b.yes);
  return formed(*b.yes, chosen_of(c, b.condition, flat(*b.yes), flat(*b.no)));
}

}  // namespace

Tensors chosen_of(Call& c, const Tensor& condition, Tensors yes, Tensors no) {
  std::vector<Shape> sizes;
  for (size_t i = 0; i < yes.size(); ++i) sizes.push_back(fit(c, condition, yes[i], no[i]));
  Tensors chosen = choose(condition, yes, no, c.importer().dependences(), c.importer().guard());
  for (size_t i = 0; i < chosen.size(); ++i)
    if (!sizes[i].empty())
      chosen[i] = shrink(chosen[i], Shape(sizes[i].size(), tiny::Dim(0)), sizes[i]);
  return chosen;
}

bool are_of_one_kind(const Tensors& yes, const Tensors& no) {
  return std::ranges::equal(yes, no, [](const Tensor& a, const Tensor& b) {
    return a.rank() == b.rank() && a.dtype() == b.dtype();
  });
}

namespace {

// A condition that input data decides: the run computes the branch that it chooses.
Tensors chosen_branch(Call& c) {
  c.check(element_count(dims_of(c.in(0)), "a condition") == 1, "a condition of shape ",
          c.in(0).shape());
  const Graph& first = c.graph_attr("then_branch");
  const Graph& second = c.graph_attr("else_branch");
  if (const auto is_first = c.importer().followed(c.node()))
    return give(c, c.importer().subgraph(*is_first ? first : second, {}));
  Branches both{reshape(c.in(0), Shape()), {}, {}, {}, {}};
  const auto build = [&](const Graph& graph, const Tensor& condition, std::string& failure) {
    std::optional<Values> made;
    c.importer().attempt_if(condition, [&] { made = c.importer().subgraph(graph, {}); }, failure);
    return made;
  };
  both.yes = build(first, both.condition, both.why_not_yes);
  both.no = build(second, invert(both.condition), both.why_not_no);
  if (both.yes && both.no) {
    c.check(both.yes->size() == both.no->size(), "its branches have ", both.yes->size(), " and ",
            both.no->size(), " outputs");
    if (!are_of_one_form(both)) {
      if (const auto taken = c.importer().decided(cast(both.condition, kInt64)))
        return give(c, integers_of(*taken).at(0) != 0 ? *both.yes : *both.no);
      if (!c.importer().is_alone()) throw Forked{&c.node(), both.condition};
      guess(c, both);
    }
  }
  return give(c, either_of(c, std::move(both)));
}

}  // namespace

Tensors import_if(Call& c) {
  if (!c.known(0)) return chosen_branch(c);
  return give(c, c.importer().subgraph(
                     c.graph_attr(c.integer(0) != 0 ? "then_branch" : "else_branch"), {}));
}

// ---- What follows a branch, for each of the two.

std::optional<bool> Importer::followed(const Node& node) const {
  const auto at = std::ranges::find(follows_, &node, &Follow::node);
  if (at == follows_.end()) return std::nullopt;
  return at->is_first;
}

namespace {

// Each makes all that follows twice.
constexpr int64_t kForksMax = 64;

}  // namespace

// Imports the nodes from `first` on once for each branch, under its condition, and has the graph's
// outputs of those that the run chooses.  Where these differ still, what follows this graph is made
// twice, if it is a branch itself: a round of a loop has to end with what the next begins with.
void Importer::fork(const Graph& graph, size_t first, const Forked& forked) {
  const Scope before = scopes_.back();
  std::vector<size_t> made;  // of the outputs, those that follow
  for (size_t i = 0; i < graph.outputs.size(); ++i)
    if (!find(graph.outputs[i].name)) made.push_back(i);
  const int64_t drawn = draws_.count;
  int64_t most_drawn = drawn;
  const auto follow = [&](bool is_first, std::string& failure) {
    std::optional<Values> out;
    const Tensor holds = is_first ? forked.condition : invert(forked.condition);
    const auto make = [&] {
      follows_.push_back({forked.node, is_first});
      const size_t noted = unsupported_.size();
      nodes(graph, first);
      const std::optional<Values> outputs = outputs_of(graph, noted);
      require(outputs.has_value(), Status::Unsupported, "what follows is not supported");
      out.emplace();
      for (const size_t i : made) out->push_back((*outputs)[i]);
      follows_.pop_back();
    };
    attempt_if(holds, make, failure);
    scopes_.back() = before;
    most_drawn = std::max(most_drawn, std::exchange(draws_.count, drawn));
    return out;
  };
  Values outputs;
  std::string failure;
  const auto make = [&] {
    Call call(*this, *forked.node, {});
    if (++forks_ > kForksMax)
      call.unsupported("more than ", kForksMax, " branches of different kinds follow each other");
    Branches both{forked.condition, {}, {}, {}, {}};
    both.yes = follow(true, both.why_not_yes);
    both.no = follow(false, both.why_not_no);
    if (both.yes && both.no && !are_of_one_form(both)) {
      const bool is_branch = scopes_.size() > 1 && !scopes_.back().is_repeated;
      if (is_branch)
        throw Forked{forked.node, guard_ ? bit_and(guard_, forked.condition) : forked.condition};
      guess(call, both);
    }
    outputs = either_of(call, std::move(both));
  };
  if (attempt(make, failure)) {
    draws_.count = most_drawn;
    for (size_t i = 0; i < made.size(); ++i)
      scopes_.back().values.insert_or_assign(graph.outputs[made[i]].name, outputs[i]);
    return;
  }
  scopes_.back() = before;
  note(graph.nodes[first], {}, failure);
  nodes(graph, first + 1);
}

}  // namespace tiny::onnx
