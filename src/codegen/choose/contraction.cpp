// The options of a kernel with one reduction: lanes and a register tile; panels.cpp has
// what its operands are copied to.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>

#include "base/checked.h"
#include "codegen/choose/chooser.h"
#include "codegen/linearize/split_reduce.h"

namespace tiny {

namespace {

constexpr int64_t kLongRunVectors = 12;  // where each step reads another page of memory,
constexpr double kFewRows = 4;           // which that many rows share
constexpr int64_t kRowsAtOnce = 4;       // of memory, read side by side
constexpr int64_t kWholeRowVectors = 4;  // of a row walked to its end, in a turn,
constexpr double kWholeRowUses = 8;      // if it is not used more often
constexpr double kStepsOfStore = 40;     // of a sum take as long as storing a lane that lies apart
constexpr int64_t kWindowMax = 16;       // steps of a window that are unrolled,
constexpr int64_t kWindowVectors = 36;   // those of all vectors side by side

}  // namespace

// Rows and vectors that keep the most accumulators busy for the fewest loads.
Chooser::RegisterTile Chooser::register_tile(double m, double n, const TileCost& cost) const {
  RegisterTile best;
  const auto lanes = static_cast<double>(lanes_);
  for (int64_t vectors = 1; vectors <= cost.vectors_max; ++vectors) {
    if (vectors > 1 && static_cast<double>(vectors - 1) * lanes >= n) break;
    for (int64_t rows = 1; rows * vectors + vectors + 1 <= target_.vector_registers - 1; ++rows) {
      if (static_cast<double>(rows) > m) break;
      const auto r = static_cast<double>(rows);
      const auto v = static_cast<double>(vectors);
      const double use_m = m / (std::ceil(m / r) * r);
      const double use_n = n / (std::ceil(n / (v * lanes)) * v * lanes);
      const double busy = std::min(1.0, r * v / 12);
      const double loads = (r + v * cost.vector_load) / (r * v);
      const double score = use_m * use_n * busy / (1 + loads / 4);
      if (score > best.score * 1.0001) best = {rows, vectors, score};
    }
  }
  // As many tiles, of nearly equal size: a last one of a row or two would wait for its sums.
  const double tiles = std::ceil(m / static_cast<double>(best.rows));
  best.rows = std::max<int64_t>(static_cast<int64_t>(std::ceil(m / tiles)), 1);
  return best;
}

// What a register tile along `lane` loads for each step of an element's sum.
double Chooser::loads_of_columns(const ClosureInfo& reduction, size_t lane, size_t row) const {
  const bool has_rows = row < kernel_.ranges.size();
  const RegisterTile tile =
      register_tile(has_rows ? extent(row) : 1, extent(lane), {1, kVectorsMax});
  const auto rows = static_cast<double>(tile.rows), vectors = static_cast<double>(tile.vectors);
  double loads = 0;
  for (const AccessInfo& a : table_.accesses) {
    if (a.store || !a.inside_reduction) continue;
    const double along = a.strides[lane] == 0 ? 1 : vectors * load_price(a, reduction, lane);
    loads += along * (has_rows && a.strides[row] != 0 ? rows : 1);
  }
  return loads / (rows * vectors);
}

// Whether a panel with lanes along `lane` holds each element once.  Steps of a window share what
// they read: a copy of theirs would not have lanes side by side.
bool Chooser::can_stage(const AccessInfo& load, size_t lane) const {
  if (load.node.op() != Op::Load || !load.inside_reduction) return false;
  const double step = std::abs(static_cast<double>(load.strides[lane]));
  for (size_t i = 0; i < load.strides.size(); ++i) {
    if (load.strides[i] == kOpaqueStride) return false;
    if (i == lane || !kernel_.ranges[i].reduced) continue;
    const double other = std::abs(static_cast<double>(load.strides[i]));
    if (other * (extent(i) - 1) >= step && step * (extent(lane) - 1) >= other && other > 0 &&
        step > 0)
      return false;
  }
  int same = 0;
  for (const AccessInfo& a : table_.accesses)
    same += a.node.op() == Op::Load && a.node.src(0) == load.node.src(0) ? 1 : 0;
  return same == 1;
}

// How often each element is read.
double Chooser::reuse(const AccessInfo& load) const {
  double times = 1;
  for (size_t i = 0; i < load.strides.size(); ++i)
    if (load.strides[i] == 0 && (space_ & bit(i))) times *= extent(i);
  return times;
}

// Whether lanes along `lane_range` are stored apart, while steps along `row` lie side by side: the
// vectors of a tile are turned by squares then.
bool Chooser::is_stored_along(size_t row, size_t lane_range) const {
  return std::ranges::any_of(table_.accesses, [&](const AccessInfo& a) {
    return a.store && std::abs(a.strides[lane_range]) > 1 && a.strides[row] == 1;
  });
}

// The output range whose steps reuse the vectors that are loaded along `lane_range`: the one that
// fills register tiles best, of equals the one whose steps lie closest.  Elements that are stored
// one by one count beside the steps of their sums.
size_t Chooser::row_range(size_t lane_range, uint64_t outputs) const {
  const size_t none = kernel_.ranges.size();
  double steps = 1;
  bool can_turn = false;
  for (size_t i = 0; i < none; ++i) {
    if (!(outputs & bit(i)) && kernel_.ranges[i].reduced) steps *= extent(i);
    can_turn |= (outputs & bit(i)) && is_stored_along(i, lane_range);
  }
  size_t best = none;
  double best_score = 0;
  for (size_t i = 0; i < kernel_.ranges.size(); ++i) {
    if (!(outputs & bit(i)) || i == lane_range || most(i) < 2) continue;
    bool reuses = false;
    int64_t step = 0;
    for (const AccessInfo& a : table_.accesses) {
      if (a.store) continue;
      if (a.strides[lane_range] != 0 && a.strides[i] == 0) reuses = true;
      if (a.strides[lane_range] == 0 && a.strides[i] != kOpaqueStride)
        step = std::max(step, std::abs(a.strides[i]));
    }
    if (!reuses) continue;
    double score = register_tile(extent(i), extent(lane_range), {}).score /
                   (1 + 1e-3 * std::log2(1.0 + static_cast<double>(step)));
    if (can_turn && !is_stored_along(i, lane_range)) score /= 1 + kStepsOfStore / steps;
    if (score > best_score) best = i, best_score = score;
  }
  return best;
}

// Lanes and a few vectors along a reduced range, folded at the end.
void Chooser::reduced_lanes(size_t lane, uint64_t outputs) {
  const int64_t vectors = most(lane) >= 4 * lanes_ ? 4 : most(lane) >= 2 * lanes_ ? 2 : 1;
  size_t row = kernel_.ranges.size();
  for (size_t i = 0; i < kernel_.ranges.size(); ++i) {
    if (!(outputs & bit(i)) || most(i) < 4) continue;
    for (const AccessInfo& a : table_.accesses)
      if (!a.store && a.strides[lane] != 0 && a.strides[i] == 0) row = i;
  }
  if (row < kernel_.ranges.size()) kind(OptionKind::Upcast, tile(number(row), 4));
  vector_tile(lane, row < kernel_.ranges.size() ? std::min<int64_t>(vectors, 2) : vectors);
}

// The bytes of an operand with lanes that is too large for the second-level cache, read at most so
// many times, and lies in rows that are pages apart; 0 if there is none.
double Chooser::bytes_in_pages(const ClosureInfo& reduction, size_t lane, double uses) const {
  double most = 0;
  for (const AccessInfo& a : table_.accesses) {
    if (a.store || a.strides[lane] != 1 || reuse(a) > uses) continue;
    const auto size = static_cast<int64_t>(a.node.dtype().bytes());
    const double bytes = a.elements * static_cast<double>(size);
    if (bytes <= static_cast<double>(target_.l2_bytes)) continue;
    for (size_t i = 0; i < kernel_.ranges.size(); ++i)
      if ((reduction.own & bit(i)) && a.strides[i] != kOpaqueStride &&
          std::abs(a.strides[i]) * size >= kPageBytes)
        most = std::max(most, bytes);
  }
  return most;
}

// The reduced range whose steps are rows of memory beyond the last cache, pages apart: they come
// faster from some of them at once.
std::optional<size_t> Chooser::rows_at_once(const ClosureInfo& reduction, size_t lane) const {
  if (bytes_in_pages(reduction, lane, kFewRows) <= static_cast<double>(target_.l3_bytes))
    return std::nullopt;
  for (size_t i = 0; i < kernel_.ranges.size(); ++i)
    if ((reduction.own & bit(i)) && const_extent(i) > kRowsAtOnce &&
        const_extent(i) % kRowsAtOnce == 0)
      return i;
  return std::nullopt;
}

// The vectors of a row of memory that are multiplied with so many rows at once.
int64_t Chooser::whole_row_vectors(int64_t height) const {
  return std::min<int64_t>((target_.vector_registers - 2) / height, kWholeRowVectors);
}

// The reduced range whose steps are rows of memory that come fastest as a whole, some side by side:
// from beyond the last cache, and where a vector is less than a line.  The sums stay in the first
// level, those of several rows of a product, `row`, in the second.
std::optional<size_t> Chooser::whole_rows(const ClosureInfo& reduction, size_t lane,
                                          std::optional<size_t> row) const {
  const double bytes = bytes_in_pages(reduction, lane, row ? kWholeRowUses : kFewRows);
  const bool is_far = bytes > static_cast<double>(target_.l3_bytes);
  if (bytes == 0 || (!is_far && !comes_in_whole_rows(target_))) return std::nullopt;
  if (!can_add_into_destination(kernel_) || !std::has_single_bit(reduction.own))
    return std::nullopt;
  const auto rows = static_cast<size_t>(std::countr_zero(reduction.own));
  const int64_t columns = const_extent(lane);
  const int64_t height = row ? const_extent(*row) : 1;
  if (height == 0 || whole_row_vectors(height) < 2) return std::nullopt;
  const int64_t sums = columns * height * table_.widest_bytes;
  if (sums > (row ? target_.l2_bytes : target_.l1_bytes) / 2 ||
      !can_walk_whole_rows(const_extent(rows), columns))
    return std::nullopt;
  for (size_t i = 0; i < kernel_.ranges.size(); ++i)
    if (i != lane && i != rows && i != row && const_extent(i) != 1) return std::nullopt;
  return rows;
}

// Each core has columns of its own, and walks its part of some rows at a time.
void Chooser::walk_whole_rows(size_t lane, size_t rows, std::optional<size_t> row) {
  std::vector<int64_t> order;
  int64_t columns = number(lane);
  const int64_t tile_columns = lanes_ * whole_row_vectors(row ? const_extent(*row) : 1);
  const int64_t part =
      ceil_div(ceil_div(const_extent(lane), int64_t{target_.cores}), tile_columns) * tile_columns;
  if (target_.cores > 1 && part >= kWholeRowMin) {
    order.push_back(columns);
    columns = tile(columns, part);
  }
  const int64_t inside = tile(number(rows), kWholeRows);
  kind(OptionKind::Unroll, inside);
  order.insert(order.end(), {number(rows), columns});
  if (row) order.push_back(number(*row));
  order.push_back(inside);
  apply({OptionKind::Order, -1, 0, order, 0, false});
  if (row) kind(OptionKind::Upcast, number(*row));
  const int64_t vectors = tile(columns, tile_columns);
  const int64_t lanes = tile(vectors, lanes_);
  kind(OptionKind::Upcast, vectors);
  kind(OptionKind::Vec, lanes);
}

// The vectors of a register tile along `lane`.  Rows that are pages apart are fetched at full speed
// only in long runs: as long as registers allow, but from memory row after row in shorter ones.
int64_t Chooser::vectors_max(const ClosureInfo& reduction, size_t lane) const {
  const double bytes = bytes_in_pages(reduction, lane, kFewRows);
  if (bytes == 0) return kVectorsMax;
  if (bytes > static_cast<double>(target_.l3_bytes) && !rows_at_once(reduction, lane))
    return kLongRunVectors;
  const int64_t all = ceil_div(most(lane), lanes_);
  return ceil_div(all, ceil_div(all, int64_t{target_.vector_registers} * 3 / 4));
}

void Chooser::contraction(const ClosureInfo& reduction) {
  if (lanes_ < 2) return;
  uint64_t outputs = 0;
  for (const ClosureInfo& c : table_.closures)
    if (c.store) outputs |= c.own;
  space_ = outputs | reduction.own;
  double steps = 1;
  for (size_t i = 0; i < kernel_.ranges.size(); ++i)
    if (reduction.own & bit(i)) steps *= extent(i);
  const size_t none = kernel_.ranges.size();
  size_t lane = none;
  double lane_price = 0;
  for (size_t i = 0; i < kernel_.ranges.size(); ++i) {
    const bool reduced = (reduction.own & bit(i)) != 0;
    if (!(outputs & bit(i)) && !reduced) continue;
    const double price = lane_cost(i, reduced, steps);
    if (lane == none || price < lane_price) lane = i, lane_price = price;
  }
  if (lane == none || lane_price > 60) return;
  if (reduction.own & bit(lane)) return reduced_lanes(lane, outputs);
  const size_t row = row_range(lane, outputs);
  const auto window = window_tile(reduction.node, number(lane), outputs, extent(lane));
  if (window && window->loads < loads_of_columns(reduction, lane, row)) {
    apply_window(*window, reduction.node);
    vector_tile(lane, 1);
    if (stays_near_by_lanes(lane) && is_loop(number(lane))) put_first(number(lane));
    return;
  }
  const std::optional<size_t> few = row == none ? std::nullopt : std::optional(row);
  if (const auto rows = whole_rows(reduction, lane, few)) return walk_whole_rows(lane, *rows, few);
  TileCost in_registers;
  in_registers.vectors_max = vectors_max(reduction, lane);
  RegisterTile best = register_tile(row == none ? 1 : extent(row), extent(lane), in_registers);
  if (row == none)
    best.vectors = std::clamp<int64_t>(most(lane) / lanes_, 1, in_registers.vectors_max);
  if (row != none && most(lane) >= lanes_) {
    // A panel is read from the second level; lanes that are stored apart need a line each.
    TileCost cost{4, kVectorsMax};
    for (const AccessInfo& a : table_.accesses)
      if (a.store && a.strides[lane] != 1) cost.vectors_max = 2;
    const RegisterTile of_panel = register_tile(extent(row), extent(lane), cost);
    const Panel panel = choose_panel(reduction, lane, row, of_panel);
    if (panel.load) return staged_contraction(reduction, lane, row, of_panel, panel);
  }
  if (row != none && best.rows > 1) {
    const int64_t inner =
        best.rows == const_extent(row) ? number(row) : tile(number(row), best.rows);
    kind(OptionKind::Upcast, inner);
  }
  vector_tile(lane, best.vectors);
  if (row != none) return;
  unroll_window(reduction, best.vectors);
  if (const auto rows = rows_at_once(reduction, lane))
    kind(OptionKind::Unroll, tile(number(*rows), kRowsAtOnce));
}

// The few steps of a pooling window, or of a filter for each channel, side by side, as those of
// words are already.
void Chooser::unroll_window(const ClosureInfo& reduction, int64_t vectors) {
  int64_t steps = 1;
  for (size_t i = 0; i < kernel_.ranges.size(); ++i)
    if (reduction.own & bit(i)) steps *= const_extent(i);
  if (steps == 0 || steps > kWindowMax || steps * vectors > kWindowVectors) return;
  for (size_t i = 0; i < kernel_.ranges.size(); ++i)
    if ((reduction.own & bit(i)) && is_loop(number(i))) kind(OptionKind::Unroll, number(i));
}

}  // namespace tiny
