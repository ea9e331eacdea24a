// Rows: several reductions of each, and what is computed of them and stored.
#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "codegen/choose/lanes.h"
#include "codegen/choose/row_tiles.h"
#include "codegen/choose/shared_values.h"
#include "codegen/choose/strategies.h"
#include "codegen/choose/words.h"
#include "codegen/options/prefetch.h"
#include "ir/shared_value.h"

namespace tiny {

namespace {

// Vectors of a row that are computed side by side; fewer where another row's loops are beside.
constexpr int64_t kRowVectors = 4;
constexpr int64_t kOverlappedVectors = 2;
// Rows among which the first and last, where loops do not overlap, are few.
constexpr int64_t kOverlappedRowsMin = 8;
// Of a short row: on a Zen 5, 2026-11-30, four side by side take 0.7 to 0.9 of one after the other
// up to 10 vectors, as long from 12 on.
constexpr int64_t kShortRowVectors = 10;
// Of such rows: 39 rows whose loops overlap, the last three apart, take 1.15, of 170 0.8.
constexpr int64_t kShortTilesMin = 12;

class Rows {
 public:
  explicit Rows(Editor& edit) : edit_(edit) {}
  void run();

 private:
  bool give_lanes();
  bool can_overlap_rows() const;
  int64_t row_loop() const;
  bool are_rows_short() const;
  void repeat_short_rows();
  void overlap_rows();
  void prefetch_rows();

  Editor& edit_;
  bool overlaps_rows_ = false;  // whose loops run side by side, for different rows
};

// The most that lanes along a range may cost: what is read and stored one by one costs as much for
// as many elements, and its arithmetic besides.
double most_lane_cost(const Editor& edit, size_t range) {
  const auto accesses = std::ranges::count_if(
      edit.table().accesses, [&](const AccessInfo& a) { return a.strides[range] != 0; });
  return std::max(kLaneCostMax, static_cast<double>(accesses * edit.lanes()));
}

// Several reductions: lanes are rows where neighbours in memory are; else each range that is
// contiguous for what it closes gets lanes. True for the
// latter.
bool Rows::give_lanes() {
  if (edit_.lanes() < 2) return false;
  double apart = 0;
  for (const ClosureInfo& c : edit_.table().closures)
    apart += cheapest_lanes(edit_, c.own, !c.store).cost;
  const uint64_t common = (uint64_t{1} << common_outer_ranges(edit_.kernel())) - 1;
  const LaneChoice row = cheapest_lanes(edit_, common, false);
  if (row.range && row.cost < apart && row.cost <= kLaneCostMax) {
    edit_.vector_tile(*row.range, kRowVectors);
    return false;
  }
  overlaps_rows_ = can_overlap_rows();
  const int64_t vectors = overlaps_rows_ ? kOverlappedVectors : kRowVectors;
  uint64_t taken = 0;
  for (const ClosureInfo& c : edit_.table().closures) {
    const LaneChoice best = cheapest_lanes(edit_, c.own, !c.store);
    if (!best.range || best.cost > most_lane_cost(edit_, *best.range) || (c.own & taken)) continue;
    // A matrix that lies along its columns wants the lanes there.
    const LaneChoice column = cheapest_lanes(edit_, c.below & ~c.own & ~common, false);
    if (!c.store && column.range && column.cost < best.cost) continue;
    // Nothing may have the lanes of two ranges.
    bool clash = false;
    for (const ClosureInfo& other : edit_.table().closures)
      if ((other.below & bit(*best.range)) && (other.below & taken)) clash = true;
    if (clash) continue;
    taken |= bit(*best.range);
    edit_.vector_tile(*best.range, vectors);
  }
  return true;
}

// Whether the loops of a row are alike, so that those of several rows can be one, and whether so
// many rows stay in the first level of cache.
bool Rows::can_overlap_rows() const {
  const size_t common = common_outer_ranges(edit_.kernel());
  if (common == 0 || edit_.most(common - 1) < kOverlappedRowsMin) return false;
  int64_t size = 0;
  for (const ClosureInfo& c : edit_.table().closures) {
    const uint64_t inside = c.own >> common;
    if (!std::has_single_bit(inside)) return false;
    const int64_t own = edit_.const_extent(common + static_cast<size_t>(std::countr_zero(inside)));
    if (own == 0 || (size != 0 && own != size)) return false;
    size = own;
  }
  const int64_t rows = std::ssize(edit_.table().closures) + 1;
  return size >= 2 * kOverlappedVectors * edit_.lanes() &&
         size * edit_.table().widest_bytes * rows <= edit_.machine().l1_bytes;
}

// The number of the loop over rows; -1 if there is none.
int64_t Rows::row_loop() const {
  size_t row = common_outer_ranges(edit_.now());
  while (row > 0 && edit_.now().ranges[row - 1].kind != RangeKind::Loop) --row;
  return row == 0 ? -1 : edit_.now().ranges[row - 1].range.int_arg();
}

// Whether no loop of a row walks more than some vectors of it.
bool Rows::are_rows_short() const {
  const size_t common = common_outer_ranges(edit_.kernel());
  return std::ranges::all_of(edit_.table().closures, [&](const ClosureInfo& c) {
    const uint64_t inside = c.own >> common;
    if (!std::has_single_bit(inside)) return false;
    const int64_t size = edit_.const_extent(common + static_cast<size_t>(std::countr_zero(inside)));
    return size > 0 && size <= kShortRowVectors * edit_.lanes();
  });
}

// Short rows are computed side by side, where registers hold what they sum: the additions of one
// wait for each other, and its loops end soon.
void Rows::repeat_short_rows() {
  const int64_t row = row_loop();
  const int64_t rows = edit_.machine().vector_registers / (2 * kRowVectors);
  if (row < 0 || !are_rows_short() || edit_.most_of(row) < kShortTilesMin * rows) return;
  edit_.kind(OptionKind::Upcast, edit_.tile(row, rows));
}

// While a row is stored, the next is computed and the one after that is read.
void Rows::overlap_rows() {
  const int64_t row = row_loop();
  overlaps_rows_ = overlaps_rows_ && row >= 0;
  if (overlaps_rows_) edit_.kind(OptionKind::Overlap, row);
}

// A row is read once and then walked in the cache, with nothing asked of memory: the next is
// fetched meanwhile.  Where loops overlap, something always is, and only what is far away is worth
// asking for sooner.
void Rows::prefetch_rows() {
  const int64_t row = row_loop();
  if (row < 0) return;
  const double near = overlaps_rows_ ? static_cast<double>(edit_.machine().l3_bytes)
                                     : static_cast<double>(edit_.machine().l2_bytes) / 2;
  for (size_t param = 0; param < edit_.now().params.size(); ++param) {
    const bool is_far = std::ranges::any_of(edit_.table().accesses, [&](const AccessInfo& a) {
      return a.node.op() == Op::Load && a.inside_reduction &&
             a.node.src(0).int_arg() == static_cast<int64_t>(param) &&
             a.elements * static_cast<double>(a.node.dtype().bytes()) > near;
    });
    const Option option{OptionKind::Prefetch, row, static_cast<int64_t>(param), {}, 0, false};
    if (is_far && can_prefetch(edit_.now(), option)) edit_.apply(option);
  }
}

void Rows::run() {
  const bool walks_rows = give_lanes();
  if (walks_rows) repeat_short_rows();
  share_values(edit_);
  if (!walks_rows) return;
  overlap_rows();
  prefetch_rows();
}

}  // namespace

// Several reductions, or one whose result is walked again with what it was made of.
bool has_rows(const Seen& seen) {
  return !seen.reductions.empty() && !is_contraction(seen) && !has_staged_operand(seen);
}

// Rows, or a contraction beside which a store walks ranges of its own.
bool may_have_rows(const Seen& seen) {
  return has_rows(seen) || (is_contraction(seen) && has_stores_apart(seen));
}

void propose_rows(const Seen& seen, std::vector<Proposal>& to) {
  if (!to.empty() && has_rows(seen)) return;  // tiles of rows go through all of it
  Editor edit = with_words(seen);
  Rows(edit).run();
  to.push_back(propose(edit.take(), seen.machine));
}

}  // namespace tiny
