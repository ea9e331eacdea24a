// The options of rows: several reductions of each, and what is computed of them and stored.
#include <algorithm>
#include <bit>

#include "codegen/choose/chooser.h"
#include "codegen/options/prefetch.h"
#include "codegen/options/stage.h"
#include "ir/shared_value.h"

namespace tiny {

namespace {

// Vectors of a row that are computed side by side; fewer where another row's loops are beside.
constexpr int64_t kRowVectors = 4;
constexpr int64_t kOverlappedVectors = 2;

}  // namespace

// Several reductions: lanes are rows where neighbours in memory are; else each range that is
// contiguous for what it closes gets lanes.
void Chooser::rows() {
  if (lanes_ < 2) return;
  double apart = 0;
  for (const ClosureInfo& c : table_.closures) apart += cheapest_lanes(c.own, !c.store).cost;
  const uint64_t common = (uint64_t{1} << common_outer_ranges(kernel_)) - 1;
  const LaneChoice row = cheapest_lanes(common, false);
  if (row.range && row.cost < apart && row.cost <= kLaneCostMax) {
    vector_tile(*row.range, kRowVectors);
    return;
  }
  walks_rows_ = true;
  overlaps_rows_ = can_overlap_rows();
  const int64_t vectors = overlaps_rows_ ? kOverlappedVectors : kRowVectors;
  uint64_t taken = 0;
  for (const ClosureInfo& c : table_.closures) {
    const LaneChoice best = cheapest_lanes(c.own, !c.store);
    if (!best.range || best.cost > kLaneCostMax || (c.own & taken)) continue;
    // A matrix that lies along its columns wants the lanes there.
    const LaneChoice column = cheapest_lanes(c.below & ~c.own & ~common, false);
    if (!c.store && column.range && column.cost < best.cost) continue;
    // Nothing may have the lanes of two ranges.
    bool clash = false;
    for (const ClosureInfo& other : table_.closures)
      if ((other.below & bit(*best.range)) && (other.below & taken)) clash = true;
    if (clash) continue;
    taken |= bit(*best.range);
    vector_tile(*best.range, vectors);
  }
}

// Whether the loops of a row are alike, so that those of several rows can be one, and whether so
// many rows stay in the first level of cache.
bool Chooser::can_overlap_rows() const {
  const size_t common = common_outer_ranges(kernel_);
  if (common == 0 || most(common - 1) < kOverlappedRowsMin) return false;
  int64_t size = 0;
  for (const ClosureInfo& c : table_.closures) {
    const uint64_t inside = c.own >> common;
    if (!std::has_single_bit(inside)) return false;
    const int64_t own = const_extent(common + static_cast<size_t>(std::countr_zero(inside)));
    if (own == 0 || (size != 0 && own != size)) return false;
    size = own;
  }
  const int64_t rows = std::ssize(table_.closures) + 1;
  return size >= 2 * kOverlappedVectors * lanes_ &&
         size * table_.widest_bytes * rows <= target_.l1_bytes;
}

// The number of the loop over rows; -1 if there is none.
int64_t Chooser::row_loop() const {
  size_t row = common_outer_ranges(current_);
  while (row > 0 && current_.ranges[row - 1].kind != RangeKind::Loop) --row;
  return row == 0 ? -1 : current_.ranges[row - 1].range.int_arg();
}

// While a row is stored, the next is computed and the one after that is read.
void Chooser::overlap_rows() {
  const int64_t row = row_loop();
  overlaps_rows_ = overlaps_rows_ && row >= 0;
  if (overlaps_rows_) kind(OptionKind::Overlap, row);
}

// The numbers of the ranges inside a place that are registers and lanes of a value: those last, so
// that they lie side by side where it is kept.
std::vector<int64_t> Chooser::lanes_of_value(int64_t value, size_t place) const {
  FreeRanges free;
  add_free_ranges(current_, current_.roots, free);
  const RangeSet own =
      free.at(topological(current_.roots).at(static_cast<size_t>(value)).node()) >> place << place;
  std::vector<int64_t> list;
  for (const RangeKind kind : {RangeKind::Upcast, RangeKind::Vec})
    for (size_t i = place; i < current_.ranges.size(); ++i)
      if ((own & bit(i)) && current_.ranges[i].kind == kind)
        list.push_back(current_.ranges[i].range.int_arg());
  return list;
}

// A value that a row's reduction computes and that is wanted again after it is kept for the row.
void Chooser::share_values() {
  size_t place = 0;
  const size_t common = common_outer_ranges(current_);
  while (place < common && current_.ranges[place].kind == RangeKind::Loop) ++place;
  if (place == 0) return;
  for (int count = 0; count < 4; ++count) {
    const std::optional<SharedValue> shared = find_shared_value(current_, place, kWorkWorthKeeping);
    if (!shared) return;
    Option option{OptionKind::Stage,
                  current_.ranges[place - 1].range.int_arg(),
                  shared->number,
                  lanes_of_value(shared->number, place),
                  0,
                  true};
    const Kernel staged = apply_option(current_, option);
    if (staged_bytes(staged) > target_.l2_bytes / 2) return;
    apply(std::move(option));
  }
}

// A row is read once and then walked in the cache, with nothing asked of memory: the next is
// fetched meanwhile.  Where loops overlap, something always is, and only what is far away is worth
// asking for sooner.
void Chooser::prefetch_rows() {
  const int64_t row = row_loop();
  if (row < 0) return;
  const double near = overlaps_rows_ ? static_cast<double>(target_.l3_bytes)
                                     : static_cast<double>(target_.l2_bytes) / 2;
  for (size_t param = 0; param < current_.params.size(); ++param) {
    const bool is_far = std::ranges::any_of(table_.accesses, [&](const AccessInfo& a) {
      return a.node.op() == Op::Load && a.inside_reduction &&
             a.node.src(0).int_arg() == static_cast<int64_t>(param) &&
             a.elements * static_cast<double>(a.node.dtype().bytes()) > near;
    });
    const Option option{OptionKind::Prefetch, row, static_cast<int64_t>(param), {}, 0, false};
    if (is_far && can_prefetch(current_, option)) apply(option);
  }
}

}  // namespace tiny
