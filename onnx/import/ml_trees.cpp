// Decision trees of ai.onnx.ml: the attributes of all versions become one forest.
#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "base/checked.h"
#include "base/error.h"
#include "onnx/import/functions.h"
#include "onnx/import/host_value.h"
#include "onnx/import/ml.h"
#include "onnx/import/table.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/forest.h"
#include "tensor/indexing.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"

namespace tiny::onnx {

namespace {

// Elements of the table of what every leaf counts for every target.
constexpr int64_t kTableMax = int64_t{1} << 28;

constexpr const char* kSplitNames[] = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE",
                                       "BRANCH_GT",  "BRANCH_EQ", "BRANCH_NEQ"};

// What leaves count for targets.
struct Weights {
  std::vector<int64_t> leaf, target;
  std::vector<double> weight;
};

enum class Aggregate : uint8_t { Average, Sum, Min, Max };
constexpr Named<Aggregate> kAggregates[] = {{"SUM", Aggregate::Sum},
                                            {"AVERAGE", Aggregate::Average},
                                            {"MIN", Aggregate::Min},
                                            {"MAX", Aggregate::Max}};

struct Trees {
  Forest forest;
  Weights weights;
};

// ---- Trees whose nodes are named by a tree and a number.

using Key = std::pair<int64_t, int64_t>;

int32_t named_node(const Call& c, const std::map<Key, int32_t>& nodes, int64_t tree, int64_t id,
                   const char* what) {
  const auto at = nodes.find({tree, id});
  c.check(at != nodes.end(), what, " names node ", id, " of tree ", tree, ", which is not there");
  return at->second;
}

// Error{InvalidModel} unless the attribute has `count` values.
Ints counted(const Call& c, const char* name, size_t count) {
  Ints values = c.ints_attr(name, {});
  c.check(values.size() == count, "the attribute ", name, " has ", values.size(), " values for ",
          count, " nodes");
  return values;
}

Forest named_forest(const Call& c, std::map<Key, int32_t>& nodes) {
  Forest f;
  const Ints trees = c.ints_attr("nodes_treeids", {});
  const size_t count = trees.size();
  const Ints ids = counted(c, "nodes_nodeids", count);
  const Ints features = counted(c, "nodes_featureids", count);
  const Ints holds = counted(c, "nodes_truenodeids", count);
  const Ints fails = counted(c, "nodes_falsenodeids", count);
  const auto modes = c.strings_attr("nodes_modes").value_or(std::vector<std::string>());
  const std::vector<double> numbers = reals_attr(c, "nodes_values");
  const Ints nans = c.ints_attr("nodes_missing_value_tracks_true", Ints(count, 0));
  c.pass_over({"nodes_hitrates", "nodes_hitrates_as_tensor"});
  c.check(count > 0 && modes.size() == count && numbers.size() == count &&
              (nans.size() == count || nans.empty()),
          "lists of ", modes.size(), " modes, ", numbers.size(), " values and ", nans.size(),
          " tracks for ", count, " nodes");
  for (size_t i = 0; i < count; ++i) {
    const bool is_new = nodes.try_emplace({trees[i], ids[i]}, f.add()).second;
    c.check(is_new, "node ", ids[i], " of tree ", trees[i], " stands twice");
  }
  std::set<int64_t> seen;
  std::vector<uint8_t> is_next(count, 0);
  for (size_t i = 0; i < count; ++i) {
    if (modes[i] == "LEAF") continue;
    const auto* const mode = std::ranges::find(kSplitNames, modes[i]);
    c.check(mode != std::end(kSplitNames), "the mode of a node is \"", modes[i], "\"");
    c.check(features[i] >= 0 && features[i] <= INT32_MAX, "a node looks at feature ", features[i]);
    f.split[i] = static_cast<Split>(mode - std::begin(kSplitNames));
    f.feature[i] = static_cast<int32_t>(features[i]);
    f.number[i] = numbers[i];
    f.nan_holds[i] = !nans.empty() && nans[i] != 0 ? 1 : 0;
    f.holds[i] = named_node(c, nodes, trees[i], holds[i], "nodes_truenodeids");
    f.fails[i] = named_node(c, nodes, trees[i], fails[i], "nodes_falsenodeids");
    is_next[static_cast<size_t>(f.holds[i])] = is_next[static_cast<size_t>(f.fails[i])] = 1;
  }
  // A tree's root is what no node leads to.
  for (size_t i = 0; i < count; ++i)
    if (is_next[i] == 0) {
      c.check(seen.insert(trees[i]).second, "tree ", trees[i], " has two roots");
      f.roots.push_back(static_cast<int32_t>(i));
    }
  c.check(seen == std::set<int64_t>(trees.begin(), trees.end()), "a tree has no root");
  return f;
}

Trees named_trees(const Call& c, const std::string& kind) {
  std::map<Key, int32_t> nodes;
  Trees t{named_forest(c, nodes), {}};
  const Ints trees = c.ints_attr((kind + "_treeids").c_str(), {});
  const Ints ids = c.ints_attr((kind + "_nodeids").c_str(), {});
  t.weights.target = c.ints_attr((kind + "_ids").c_str(), {});
  t.weights.weight = reals_attr(c, (kind + "_weights").c_str());
  c.check(ids.size() == trees.size() && t.weights.target.size() == trees.size() &&
              t.weights.weight.size() == trees.size(),
          "weights of leaves in lists of ", trees.size(), ", ", ids.size(), ", ",
          t.weights.target.size(), " and ", t.weights.weight.size());
  for (size_t i = 0; i < trees.size(); ++i)
    t.weights.leaf.push_back(named_node(c, nodes, trees[i], ids[i], "a weight"));
  return t;
}

// ---- What the leaves make.

// What trees of one target each add up to: [rows, targets].
std::optional<Tensor> sum_by_tree(const Tensor& x, const Trees& t, const Tensor& leaves,
                                  int64_t targets, DType dtype) {
  const auto count = t.forest.feature.size();
  std::vector<double> weight(count, 0);
  std::vector<int64_t> target(count, -1);
  for (size_t i = 0; i < t.weights.leaf.size(); ++i) {
    const auto leaf = static_cast<size_t>(t.weights.leaf[i]);
    if (target[leaf] >= 0) return std::nullopt;
    target[leaf] = t.weights.target[i];
    weight[leaf] = t.weights.weight[i];
  }
  // Nodes of one tree are found from its root on.
  const auto trees = static_cast<int64_t>(t.forest.roots.size());
  std::vector<double> is_of(static_cast<size_t>(checked_mul(trees, targets, "trees and targets")),
                            0);
  std::vector<uint8_t> is_seen(count, 0);
  for (size_t tree = 0; tree < t.forest.roots.size(); ++tree) {
    int64_t one = -1;
    std::vector<int32_t> open{t.forest.roots[tree]};
    while (!open.empty()) {
      const auto node = static_cast<size_t>(open.back());
      open.pop_back();
      if (is_seen[node]++ != 0) continue;
      if (target[node] >= 0 && one >= 0 && one != target[node]) return std::nullopt;
      one = std::max(one, target[node]);
      for (const int32_t next : {t.forest.holds[node], t.forest.fails[node]}) open.push_back(next);
    }
    if (one >= 0) is_of[tree * static_cast<size_t>(targets) + static_cast<size_t>(one)] = 1;
  }
  const Tensor of_leaf =
      of_leaves(real_constant(x, dtype, {static_cast<int64_t>(count)}, weight), leaves);
  if (targets == 1) return sum_in_dtype(of_leaf, {1}, true);
  // Stored, so that they are looked up once and not for each target.
  return matmul(contiguous(of_leaf), real_constant(x, dtype, {trees, targets}, is_of));
}

// [rows, targets] from the leaf of each row in each tree.
Tensor aggregated(const Call& c, const Tensor& x, const Trees& t, int64_t targets,
                  Aggregate aggregate, DType dtype) {
  for (const int64_t target : t.weights.target)
    c.check(target >= 0 && target < targets, "a leaf counts for target ", target, " of ", targets);
  const Tensor leaves = forest_leaves(x, t.forest);
  const bool is_sum = aggregate == Aggregate::Sum || aggregate == Aggregate::Average;
  const auto share = [&](const Tensor& sum) {
    return aggregate == Aggregate::Sum
               ? sum
               : sum / number(sum, static_cast<double>(t.forest.roots.size()));
  };
  if (is_sum)
    if (const auto sum = sum_by_tree(x, t, leaves, targets, dtype)) return share(*sum);
  const auto nodes = static_cast<int64_t>(t.forest.feature.size());
  if (checked_mul(nodes, targets, "the table of leaves") > kTableMax)
    c.unsupported("a table of ", nodes, " nodes and ", targets, " targets");
  // What counts nothing is neither least nor greatest.
  const double none = is_sum ? 0 : std::numeric_limits<double>::infinity();
  const double sign = aggregate == Aggregate::Max ? -1 : 1;
  std::vector<double> counts(static_cast<size_t>(nodes * targets), sign * none);
  for (size_t i = 0; i < t.weights.leaf.size(); ++i) {
    double& count = counts[static_cast<size_t>(t.weights.leaf[i] * targets + t.weights.target[i])];
    count = is_sum ? count + t.weights.weight[i] : t.weights.weight[i];
  }
  const Tensor of_leaf = of_leaves(real_constant(x, dtype, {nodes, targets}, counts), leaves);
  if (is_sum) return share(sum_in_dtype(of_leaf, {1}));
  return aggregate == Aggregate::Min ? min(of_leaf, {1}) : max(of_leaf, {1});
}

Tensor with_base(const Call& c, const Tensor& y, const std::vector<double>& base, int64_t targets) {
  if (base.empty()) return y;
  c.check(std::ssize(base) == targets || base.size() == 1, "base values for ", base.size(), " of ",
          targets, " targets");
  return y + real_constant(y, y.dtype(), {static_cast<int64_t>(base.size())}, base);
}

// Thresholds are of float32 unless they come as a tensor of another type.
DType computed_dtype(const Tensor& x) {
  return x.dtype() == kFloat64 ? kFloat64 : kFloat32;
}

int64_t target_count(const Call& c) {
  const int64_t targets = c.attr("n_targets");
  c.check(targets > 0 && targets <= kTableMax, "the attribute n_targets is ", targets);
  return targets;
}

// Whether each leaf of some tree counts for the target, so that every row has a score of it.
bool is_always_counted(const Trees& t, int64_t target) {
  std::vector<uint8_t> counts(t.forest.feature.size(), 0);
  for (size_t i = 0; i < t.weights.leaf.size(); ++i)
    if (t.weights.target[i] == target) counts[static_cast<size_t>(t.weights.leaf[i])] = 1;
  return std::ranges::any_of(t.forest.roots, [&](int32_t root) {
    std::vector<int32_t> open{root};
    while (!open.empty()) {
      const auto node = static_cast<size_t>(open.back());
      open.pop_back();
      const bool is_leaf = t.forest.holds[node] == t.forest.fails[node];
      if (is_leaf && counts[node] == 0) return false;
      if (is_leaf) continue;
      open.push_back(t.forest.holds[node]);
      open.push_back(t.forest.fails[node]);
    }
    return true;
  });
}

// The scores, with another number where no leaf of a row counts.
Tensor where_counted(const Call& c, const Tensor& x, const Trees& t, const Tensor& scores,
                     double other) {
  const int64_t targets = dim_of(scores, 1);
  bool all = true;
  for (int64_t i = 0; all && i < targets; ++i) all = is_always_counted(t, i);
  if (all) return scores;
  Trees ones = t;
  std::ranges::fill(ones.weights.weight, 1);
  const Tensor counts = aggregated(c, x, ones, targets, Aggregate::Sum, x.dtype());
  return where(greater(counts, number(counts, 0)), scores, number(scores, other));
}

// Scores to choose a class by: one that no leaf of a row counts for is not chosen.
Tensor choosable(const Call& c, const Tensor& x, const Trees& t, const Tensor& scores) {
  return where_counted(c, x, t, scores, -std::numeric_limits<double>::infinity());
}

// As onnxruntime has it: of several targets one that no leaf of a row counts for is 0, and has no
// base value either.
Tensors import_tree_regressor(Call& c) {
  const Tensor x = cast(c.in(0), computed_dtype(c.in(0)));
  const int64_t targets = target_count(c);
  const Trees t = named_trees(c, "target");
  const Tensor y =
      aggregated(c, x, t, targets,
                 named_attr<Aggregate>(c, "aggregate_function", "SUM", kAggregates), x.dtype());
  const std::vector<double> base = reals_attr(c, "base_values");
  const Tensor moved = targets == 1 ? with_base(c, where_counted(c, x, t, y, 0), base, 1)
                                    : where_counted(c, x, t, with_base(c, y, base, targets), 0);
  return {cast(post_transformed(c, moved), kFloat32)};
}

// Two classes whose trees count for one of them alone have the scores of that one.
Tensors import_tree_classifier(Call& c) {
  const Tensor x = cast(c.in(0), computed_dtype(c.in(0)));
  const ClassLabels labels(c, "classlabels_int64s", "classlabels_strings");
  const Trees t = named_trees(c, "class");
  const std::vector<double> base = reals_attr(c, "base_values");
  const int64_t classes = std::max<int64_t>(labels.count(), 1);
  const Tensor y = aggregated(c, x, t, classes, Aggregate::Sum, x.dtype());
  const std::set<int64_t> of(t.weights.target.begin(), t.weights.target.end());
  if (classes != 2 || of.size() > 1 || base.size() == 2) {
    const Tensor scores = with_base(c, y, base, classes);
    if (classes != 2)
      return labels.of(base.empty() ? choosable(c, x, t, scores) : scores,
                       cast(post_transformed(c, scores), kFloat32));
    return labels.of_two(slice_axis(scores, 1, 1, 2), 0,
                         cast(post_transformed(c, scores), kFloat32));
  }
  const int64_t one = of.empty() ? 0 : *of.begin();
  const Tensor score = with_base(c, slice_axis(y, 1, one, one + 1), base, 1);
  const bool is_share = std::ranges::all_of(t.weights.weight, [](double w) { return w >= 0; });
  return labels.of_two(score, is_share ? 0.5 : 0, cast(both_scores(c, score, is_share), kFloat32));
}

// ---- TreeEnsemble, whose leaves are apart from its nodes.

std::vector<double> tensor_reals(const Call& c, const char* name) {
  return reals_of(to_host_tensor(c.tensor_attr(name)));
}

// The values of each node that asks whether a feature is one of several: sets between NaNs.
std::vector<std::vector<double>> members(const Call& c) {
  std::vector<std::vector<double>> sets(1);
  if (!c.has_attribute("membership_values")) return sets;
  for (const double value : tensor_reals(c, "membership_values"))
    if (value != value)
      sets.emplace_back();
    else
      sets.back().push_back(value);
  return sets;
}

constexpr int64_t kMember = 6;

// A node that asks for one of several becomes as many that ask for one, one after the other.
void set_split(const Call& c, Forest& f, size_t node, int64_t mode, double number,
               const std::vector<double>* set) {
  if (mode != kMember) {
    f.split[node] = static_cast<Split>(mode);
    f.number[node] = number;
    return;
  }
  c.check(set != nullptr && !set->empty(), "a node without values asks whether one is there");
  const int32_t fails = f.fails[node], holds = f.holds[node], feature = f.feature[node];
  auto at = static_cast<int32_t>(node);
  for (size_t i = 0; i < set->size(); ++i) {
    const auto here = static_cast<size_t>(at);
    f.feature[here] = feature;
    f.split[here] = Split::Equal;
    f.number[here] = (*set)[i];
    f.nan_holds[here] = f.nan_holds[node];
    f.holds[here] = holds;
    if (i + 1 < set->size()) at = f.add();
    f.fails[here] = i + 1 < set->size() ? at : fails;
  }
}

Trees ensemble_trees(const Call& c) {
  Trees t;
  Forest& f = t.forest;
  const Ints features = c.ints_attr("nodes_featureids", {});
  const size_t count = features.size();
  const Ints holds = counted(c, "nodes_truenodeids", count);
  const Ints fails = counted(c, "nodes_falsenodeids", count);
  const Ints leaf_holds = counted(c, "nodes_trueleafs", count);
  const Ints leaf_fails = counted(c, "nodes_falseleafs", count);
  const Ints nans = c.ints_attr("nodes_missing_value_tracks_true", Ints(count, 0));
  const std::vector<double> numbers = tensor_reals(c, "nodes_splits");
  const HostTensor modes = to_host_tensor(c.tensor_attr("nodes_modes"));
  const Ints mode = integers_of(modes);
  c.pass_over({"nodes_hitrates"});
  c.check(count > 0 && numbers.size() == count && mode.size() == count && nans.size() == count,
          "lists of ", numbers.size(), " splits, ", mode.size(), " modes and ", nans.size(),
          " tracks for ", count, " nodes");
  t.weights.target = c.ints_attr("leaf_targetids", {});
  t.weights.weight = tensor_reals(c, "leaf_weights");
  const auto leaves = static_cast<int64_t>(t.weights.target.size());
  c.check(t.weights.weight.size() == t.weights.target.size(), t.weights.weight.size(),
          " weights of ", leaves, " leaves");
  c.check(count + t.weights.target.size() <= INT32_MAX, "a forest of ", count, " nodes");
  for (size_t i = 0; i < count + t.weights.target.size(); ++i) f.add();
  for (int64_t i = 0; i < leaves; ++i) t.weights.leaf.push_back(static_cast<int64_t>(count) + i);
  const auto next = [&](int64_t at, int64_t is_leaf) {
    const int64_t most = is_leaf != 0 ? leaves : static_cast<int64_t>(count);
    c.check(at >= 0 && at < most, "a node leads to ", at, " of ", most);
    return static_cast<int32_t>(is_leaf != 0 ? at + static_cast<int64_t>(count) : at);
  };
  const std::vector<std::vector<double>> sets = members(c);
  size_t set = 0;
  for (size_t i = 0; i < count; ++i) {
    c.check(features[i] >= 0 && features[i] <= INT32_MAX, "a node looks at feature ", features[i]);
    c.check(mode[i] >= 0 && mode[i] <= kMember, "the mode of a node is ", mode[i]);
    f.feature[i] = static_cast<int32_t>(features[i]);
    f.nan_holds[i] = nans[i] != 0 ? 1 : 0;
    f.holds[i] = next(holds[i], leaf_holds[i]);
    f.fails[i] = next(fails[i], leaf_fails[i]);
    const bool is_member = mode[i] == kMember;
    set_split(c, f, i, mode[i], numbers[i], is_member && set < sets.size() ? &sets[set] : nullptr);
    if (is_member) ++set;
  }
  for (const int64_t root : c.ints_attr("tree_roots", {})) {
    c.check(root >= 0 && root < static_cast<int64_t>(count), "a root ", root, " of ", count,
            " nodes");
    f.roots.push_back(static_cast<int32_t>(root));
  }
  c.check(!f.roots.empty(), "it has no roots");
  return t;
}

Tensors import_tree_ensemble(Call& c) {
  const Tensor& given = c.in(0);
  const Tensor x = given.dtype().bits() < 32 ? cast(given, kFloat32) : given;
  const int64_t aggregate = c.attr("aggregate_function", 1);
  c.check(aggregate >= 0 && aggregate <= 3, "the attribute aggregate_function is ", aggregate);
  const int64_t transform = c.attr("post_transform", 0);
  c.check(transform >= 0 && transform <= 4, "the attribute post_transform is ", transform);
  const Trees t = ensemble_trees(c);
  const Tensor y = where_counted(
      c, x, t, aggregated(c, x, t, target_count(c), static_cast<Aggregate>(aggregate), x.dtype()),
      0);
  constexpr PostTransform kNumbered[] = {PostTransform::None, PostTransform::Softmax,
                                         PostTransform::Logistic, PostTransform::SoftmaxZero,
                                         PostTransform::Probit};
  return {cast(post_transformed(y, kNumbered[transform]), given.dtype())};
}

// clang-format off
constexpr Row kRows[] = {
    {"TreeEnsembleRegressor",  1, kNewestMl, import_tree_regressor, 0, nullptr, kMl},
    {"TreeEnsembleClassifier", 1, kNewestMl, import_tree_classifier, 0, nullptr, kMl},
    {"TreeEnsemble",           5, kNewestMl, import_tree_ensemble, 0, nullptr, kMl},
};
// clang-format on

}  // namespace

std::span<const Row> ml_tree_rows() {
  return kRows;
}

}  // namespace tiny::onnx
