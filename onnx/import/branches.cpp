#include "onnx/import/branches.h"

#include <algorithm>

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
    throw Error(Status::Unsupported,
                cat("the branch that ", name(), " takes cannot be computed: ", why_));
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

std::optional<Values> branch(Call& c, const Graph& graph, const Tensor& condition,
                             std::string& failure) {
  std::optional<Values> made;
  c.importer().attempt_if(condition, [&] { made = c.importer().subgraph(graph, {}); }, failure);
  return made;
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
  const Tensor condition = reshape(c.in(0), Shape());
  const Graph& first = c.graph_attr("then_branch");
  const Graph& second = c.graph_attr("else_branch");
  std::string why_not_yes, why_not_no;
  auto yes = branch(c, first, condition, why_not_yes);
  auto no = branch(c, second, invert(condition), why_not_no);
  if (!yes && !no) c.unsupported("neither of its branches can be computed: ", why_not_yes);
  if (yes && no) {
    c.check(yes->size() == no->size(), "its branches have ", yes->size(), " and ", no->size(),
            " outputs");
    if (!are_alike(*yes, *no) || !are_of_one_kind(flat(*yes), flat(*no)))
      if (const auto taken = c.importer().decided(cast(condition, kInt64)))
        return give(c, integers_of(*taken).at(0) != 0 ? *yes : *no);
    if (!are_alike(*yes, *no))
      c.unsupported(
          "its condition depends on input data and its branches differ in kind or length");
    // Who can ask nobody builds what follows for one of them: for that which does less, and so
    // leaves more as it is.
    if (!are_of_one_kind(flat(*yes), flat(*no))) {
      const bool is_first = first.nodes.size() < second.nodes.size();
      (is_first ? why_not_no : why_not_yes) =
          "what it makes has not the rank or the type of the other's";
      (is_first ? no : yes) = std::nullopt;
    }
  }
  if (!yes) yes = refused_branch(c, condition, why_not_yes, *no);
  if (!no) no = refused_branch(c, condition, why_not_no, *yes);
  return give(c, formed(*yes, chosen_of(c, condition, flat(*yes), flat(*no))));
}

}  // namespace

Tensors import_if(Call& c) {
  if (!c.known(0)) return chosen_branch(c);
  return give(c, c.importer().subgraph(
                     c.graph_attr(c.integer(0) != 0 ? "then_branch" : "else_branch"), {}));
}

}  // namespace tiny::onnx
