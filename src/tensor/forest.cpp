#include "tensor/forest.h"

#include <algorithm>
#include <bit>
#include <span>

#include "base/checked.h"
#include "base/error.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/movement.h"
#include "tensor/recurrence.h"

namespace tiny {

namespace {

// Levels of a kernel: of more, the loads of one row wait for each other for so long that the rows
// beside it are not reached; of fewer, more kernels are started.
constexpr int64_t kLevelsAtOnce = 4;
constexpr size_t kNodesMax = size_t{1} << 29;  // whose words a uint32 counts

template <class T>
Tensor table(const Tensor& x, DType dtype, std::span<const T> values) {
  const auto count = static_cast<int64_t>(values.size());
  return from_data(x.context_ref(), dtype, {count}, values.data(),
                   static_cast<int64_t>(values.size_bytes()));
}

void check_nodes(const Forest& f, int64_t features) {
  require(f.feature.size() <= kNodesMax, Status::InvalidArgument, "forest: ", f.feature.size(),
          " nodes; at most ", kNodesMax, " are possible");
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

// What the walk looks up.  A node is the place of its words, kWords times its number; what it wants
// of one of float32 lies side by side, in one line.  Tables are as long as a power of two, so that
// one operation shows the compiler that a place is in them, which needs no check then.
struct Tables {
  Tensor nodes;   // uint32: feature, bits of the number, next where it fails, where it holds
  Tensor number;  // of float64 alone
  Tensor split, nan_holds;
  std::vector<Split> kinds;  // that there are
};
constexpr int64_t kWordBits = 2, kWords = 1 << kWordBits;
enum Word : uint8_t { Feature, Number, Next };

uint32_t word_place(int32_t node) {
  return static_cast<uint32_t>(node) << kWordBits;
}

// Nodes [rows, trees] as places of words that are there: uint64, which no operation wraps.
Tensor place_of(const Tables& t, const Tensor& node) {
  const int64_t last = t.nodes.shape()[0].value() - kWords;
  return cast(bit_and(node, number_int(node, last)), kUInt64);
}

// Of a table with one element for each node.
Tensor looked_up(const Tensor& table, const Tensor& place) {
  return gather(table, shift_right(place, number_int(place, kWordBits)));
}

Tensor word_of(const Tables& t, const Tensor& place, Word word) {
  return gather(t.nodes, place + number_int(place, word));
}

// x at the feature of each node.
Tensor feature_of(const Tensor& x, const Tables& t, const Tensor& place) {
  const Tensor row = cast(positions(x.context_ref(), kInt64, x.shape()[0], 0, 2), kUInt64);
  const Tensor feature = word_of(t, place, Word::Feature);
  const Tensor last = number_int(feature, x.shape()[1].value() - 1);
  const Tensor column = cast(minimum(feature, last), kUInt64);
  return gather(flatten(x), row * number_int(row, x.shape()[1].value()) + column);
}

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
  const Tensor place = place_of(t, node);
  const Tensor value = feature_of(x, t, place);
  const Tensor number =
      t.number ? looked_up(t.number, place) : bitcast(word_of(t, place, Word::Number), kFloat32);
  Tensor holds = compare(value, t.kinds[0], number);
  for (size_t i = 1; i < t.kinds.size(); ++i) {
    const Tensor kind = number_int(t.split, static_cast<int64_t>(t.kinds[i]));
    holds =
        where(equal(looked_up(t.split, place), kind), compare(value, t.kinds[i], number), holds);
  }
  if (t.nan_holds) holds = bit_or(holds, bit_and(is_nan(value), looked_up(t.nan_holds, place)));
  return word_of(t, place + cast(holds, kUInt64), Word::Next);
}

// The list, as long as a power of two.
template <class T>
Tensor long_table(const Tensor& x, DType dtype, std::vector<T> values) {
  values.resize(std::bit_ceil(values.size()));
  return table<T>(x, dtype, values);
}

Tables tables_of(const Tensor& x, const Forest& f) {
  Tables t;
  std::vector<uint32_t> nodes;
  for (size_t i = 0; i < f.holds.size(); ++i)
    nodes.insert(nodes.end(), {static_cast<uint32_t>(f.feature[i]),
                               std::bit_cast<uint32_t>(static_cast<float>(f.number[i])),
                               word_place(f.fails[i]), word_place(f.holds[i])});
  t.nodes = long_table(x, kUInt32, nodes);
  if (x.dtype() == kFloat64) t.number = long_table(x, kFloat64, f.number);
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
  if (t.kinds.size() > 1) t.split = long_table(x, kUInt8, splits);
  if (has_nan) t.nan_holds = cast(long_table(x, kUInt8, f.nan_holds), kBool);
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
  std::vector<uint32_t> roots;
  for (const int32_t root : forest.roots) roots.push_back(word_place(root));
  const Dim rows = x.shape()[0];
  Tensor node = expand(unsqueeze(table<uint32_t>(x, kUInt32, roots), {0}),
                       {rows, static_cast<int64_t>(roots.size())});
  // Written out, all levels would become one kernel that walks one row after the other.
  const RecurrenceFunction some_levels = [&](const RecurrenceStep& s) {
    Tensor at = s.state[0];
    for (int64_t i = 0; i < kLevelsAtOnce; ++i) at = next_nodes(x, tables, at);
    return RecurrenceResult{{}, {at}};
  };
  const int64_t steps = ceil_div(levels, kLevelsAtOnce);
  if (steps > 0)
    node =
        recur(x.context_ref(),
              {.steps = steps, .sequences = {}, .state = {node}, .is_backwards = {}}, some_levels)
            .state[0];
  return shift_right(cast(node, kInt64), Tensor::weak_int(x.context_ref(), kWordBits));
}

Tensor of_leaves(const Tensor& values, const Tensor& leaves) {
  const Tensor place = cast(leaves, kUInt64);
  return gather(values, minimum(place, number_int(place, values.shape()[0].value() - 1)));
}

}  // namespace tiny
