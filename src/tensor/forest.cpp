#include "tensor/forest.h"

#include <algorithm>
#include <span>

#include "base/error.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/movement.h"
#include "tensor/recurrence.h"

namespace tiny {

namespace {

template <class T>
Tensor table(const Tensor& x, DType dtype, std::span<const T> values) {
  const auto count = static_cast<int64_t>(values.size());
  return from_data(x.context_ref(), dtype, {count}, values.data(),
                   static_cast<int64_t>(values.size_bytes()));
}

void check_nodes(const Forest& f, int64_t features) {
  const auto count = static_cast<int32_t>(f.feature.size());
  const auto is_node = [&](int32_t at) { return at >= 0 && at < count; };
  for (size_t i = 0; i < f.feature.size(); ++i) {
    require(is_node(f.holds[i]) && is_node(f.fails[i]), Status::InvalidArgument, "forest: node ", i,
            " leads to ", f.holds[i], " and ", f.fails[i], "; there are ", count, " nodes");
    require(f.feature[i] >= 0 && f.feature[i] < features, Status::InvalidArgument, "forest: node ",
            i, " looks at feature ", f.feature[i], " of ", features);
  }
  for (const int32_t root : f.roots)
    require(is_node(root), Status::InvalidArgument, "forest: a root ", root, " of ", count,
            " nodes");
}

// The longest way from a node to a leaf.
int64_t levels_of(const Forest& f) {
  const auto count = f.feature.size();
  const auto is_leaf = [&](size_t i) {
    return static_cast<size_t>(f.holds[i]) == i && f.holds[i] == f.fails[i];
  };
  // From the leaves on: a node is done when both of its successors are.
  std::vector<std::vector<size_t>> before(count);
  std::vector<int> open(count, 0);
  std::vector<size_t> done;
  for (size_t i = 0; i < count; ++i) {
    if (is_leaf(i)) {
      done.push_back(i);
      continue;
    }
    for (const int32_t next : {f.holds[i], f.fails[i]}) {
      before[static_cast<size_t>(next)].push_back(i);
      ++open[i];
    }
  }
  std::vector<int64_t> levels(count, 0);
  for (size_t at = 0; at < done.size(); ++at)
    for (const size_t node : before[done[at]]) {
      levels[node] = std::max(levels[node], levels[done[at]] + 1);
      if (--open[node] == 0) done.push_back(node);
    }
  require(done.size() == count, Status::InvalidArgument,
          "forest: a node leads back to itself; wanted trees");
  return levels.empty() ? 0 : *std::ranges::max_element(levels);
}

// Tables that the walk looks up.
struct Tables {
  Tensor feature, number, next, split, nan_holds;
  std::vector<Split> kinds;  // that there are
};

Tensor compare(const Tensor& a, Split split, const Tensor& b) {
  switch (split) {
    case Split::LessEqual:
      return less_equal(a, b);
    case Split::Less:
      return less(a, b);
    case Split::GreaterEqual:
      return greater_equal(a, b);
    case Split::Greater:
      return greater(a, b);
    case Split::Equal:
      return equal(a, b);
    case Split::NotEqual:
      return not_equal(a, b);
  }
  return {};
}

Tensor next_nodes(const Tensor& x, const Tables& t, const Tensor& node) {
  const Tensor value = take_along_axis(x, gather(t.feature, node), 1);
  const Tensor number = gather(t.number, node);
  Tensor holds = compare(value, t.kinds[0], number);
  for (size_t i = 1; i < t.kinds.size(); ++i) {
    const Tensor kind = number_int(t.split, static_cast<int64_t>(t.kinds[i]));
    holds = where(equal(gather(t.split, node), kind), compare(value, t.kinds[i], number), holds);
  }
  if (t.nan_holds) holds = bit_or(holds, bit_and(is_nan(value), gather(t.nan_holds, node)));
  return gather(t.next, node * number_int(node, 2) + cast(holds, kInt64));
}

Tables tables_of(const Tensor& x, const Forest& f) {
  Tables t;
  const std::vector<int64_t> features(f.feature.begin(), f.feature.end());
  t.feature = table<int64_t>(x, kInt64, features);
  const std::vector<float> numbers(f.number.begin(), f.number.end());
  t.number = x.dtype() == kFloat64 ? table<double>(x, kFloat64, f.number)
                                   : cast(table<float>(x, kFloat32, numbers), x.dtype());
  std::vector<int64_t> next;
  for (size_t i = 0; i < f.holds.size(); ++i) {
    next.push_back(f.fails[i]);
    next.push_back(f.holds[i]);
  }
  t.next = table<int64_t>(x, kInt64, next);
  // How a leaf compares is no matter: both ways lead to it.
  bool has_nan = false;
  std::vector<uint8_t> splits;
  for (size_t i = 0; i < f.split.size(); ++i) {
    splits.push_back(static_cast<uint8_t>(f.split[i]));
    if (f.holds[i] == f.fails[i]) continue;
    has_nan = has_nan || f.nan_holds[i] != 0;
    if (std::ranges::find(t.kinds, f.split[i]) == t.kinds.end()) t.kinds.push_back(f.split[i]);
  }
  if (t.kinds.empty()) t.kinds.push_back(Split::LessEqual);
  if (t.kinds.size() > 1) t.split = table<uint8_t>(x, kUInt8, splits);
  if (has_nan) t.nan_holds = cast(table<uint8_t>(x, kUInt8, f.nan_holds), kBool);
  return t;
}

}  // namespace

int32_t Forest::add() {
  const auto node = static_cast<int32_t>(feature.size());
  feature.push_back(0);
  number.push_back(0);
  split.push_back(Split::LessEqual);
  nan_holds.push_back(0);
  holds.push_back(node);
  fails.push_back(node);
  return node;
}

Tensor forest_leaves(const Tensor& x, const Forest& forest) {
  require(x.rank() == 2 && x.dtype().is_float(), Status::Shape, "forest: numbers of shape ",
          x.shape(), " and dtype ", x.dtype(), "; it takes [rows, features] of floats");
  check_nodes(forest, x.shape()[1].value());
  const int64_t levels = levels_of(forest);
  const Tables tables = tables_of(x, forest);
  const std::vector<int64_t> roots(forest.roots.begin(), forest.roots.end());
  const Dim rows = x.shape()[0];
  Tensor node = expand(unsqueeze(table<int64_t>(x, kInt64, roots), {0}),
                       {rows, static_cast<int64_t>(roots.size())});
  // Written out, the levels would become one kernel that walks one row after the other.
  if (levels > 0)
    node = recur(x.context_ref(),
                 {.steps = levels, .sequences = {}, .state = {node}, .is_backwards = {}},
                 [&](const RecurrenceStep& s) {
                   return RecurrenceResult{{}, {next_nodes(x, tables, s.state[0])}};
                 })
               .state[0];
  return node;
}

}  // namespace tiny
