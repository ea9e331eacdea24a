#include "codegen/choose/choose.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "base/checked.h"
#include "base/error.h"
#include "codegen/choose/chooser.h"
#include "codegen/options/stage.h"
#include "ir/bounds.h"

namespace tiny {

namespace {

// Vectors of a staged value that are computed side by side.
constexpr int64_t kFillVectors = 4;
// What it costs to store lanes that lie apart, in loads of a vector.
constexpr double kStoredApart = 32;
constexpr double kStoredColliding = 512;  // where a tile's lines push each other out
constexpr double kStoredOfRun = 20;       // lanes apart by a size of the run, one by one
// Lanes so many elements apart share lines.
constexpr int64_t kSharedLine = 4;
// Rows of a square of bytes, which are unpacked in pieces of 16 bytes.
constexpr int64_t kByteRows = 16;
// Choices by position that are unrolled together.
constexpr int64_t kChoicesMax = 36;

}  // namespace

Chooser::Chooser(const Kernel& kernel, const Machine& target, bool use_dots)
    : kernel_(kernel),
      target_(target),
      table_(access_table(kernel)),
      current_(kernel),
      use_dots_(use_dots) {
}

void Chooser::run() {
  lanes_ = target_.vector_bytes / table_.widest_bytes;
  if (lanes_ < 2 || !vectorises(kernel_, target_)) lanes_ = 1;
  const auto is_reduction = [](const ClosureInfo& c) { return !c.store; };
  const auto found = std::ranges::find_if(table_.closures, is_reduction);
  if (std::ranges::count_if(table_.closures, is_reduction) == 1) form_words(UOp(found->node));
  std::vector<const ClosureInfo*> reductions;
  for (const ClosureInfo& c : table_.closures)
    if (!c.store) reductions.push_back(&c);
  if (reductions.size() == 2 && reads(*reductions[1], *reductions[0]))
    staged_operand(*reductions[0]);
  else if (reductions.size() == 1 && !is_row(*reductions.front()))
    contraction(*reductions.front());
  else if (reductions.empty())
    elementwise();
  else if (!row_tiles())
    rows();
  if (!reductions.empty()) share_values();
  if (walks_rows_) overlap_rows();
  if (walks_rows_) prefetch_rows();
}

bool vectorises(const Kernel& kernel, const Target& target) {
  for (const UOp& u : topological(kernel.roots)) {
    if (!has(u.op(), kElementwise) || u.dtype() == kInt64 || u.src().empty()) continue;
    if (u.op() == Op::Less || u.op() == Op::LessEqual || u.op() == Op::Equal ||
        u.op() == Op::NotEqual) {
      if (u.src(0).dtype() == kInt64) continue;
    }
    if (!target.vectorises(u.op(), u.src(u.src().size() - 1).dtype())) return false;
    if (u.op() == Op::Cast && !target.vectorises(u.op(), u.dtype())) return false;
  }
  return true;
}

int64_t Chooser::const_extent(size_t range) const {
  const UOp size = kernel_.ranges[range].range.src(0);
  return size.is_const() ? size.const_int() : 0;
}

constexpr double kRunTimeLanes = 1.05;  // some of the last vector's are not used

// Whether the lines of two vectors of lanes `stride` elements apart are more than their sets of the
// first level of cache hold: its ways are a page each.
bool Chooser::are_lines_colliding(int64_t stride, int64_t bytes) const {
  constexpr int64_t kPage = 4096;
  const int64_t sets = kPage / std::gcd(stride * bytes, kPage);
  return sets * (target_.l1_bytes / kPage) < 2 * lanes_;
}

double Chooser::lane_cost(size_t range, bool reduced, double steps) const {
  double cost = table_.opaque & bit(range) ? 1e9 : 0;
  // Panels that lie in place are walked once, and are of no use to other lanes.
  const bool is_packed = std::ranges::any_of(table_.accesses, [&](const AccessInfo& a) {
    size_t panels = 0;
    return !a.store && a.inside_reduction && lies_in_panels(a, range, &panels);
  });
  for (const AccessInfo& a : table_.accesses) {
    const int64_t stride = a.strides[range];
    // What is not read at every step of the reduction costs as much less.
    const double weight = a.inside_reduction ? 1 : 1 / steps;
    if (stride == 0) {
      if (a.store && !reduced) cost += weight;
      continue;
    }
    // Sums are added to their place for every block of steps, a line for each lane.
    if (a.store && is_packed) {
      cost += weight;
      continue;
    }
    const bool is_opaque = stride == kOpaqueStride;
    if (a.store && steps > 1 && std::abs(stride) > kSharedLine) {
      const bool collide = !is_opaque && are_lines_colliding(stride, a.node.src(1).dtype().bytes());
      const double price = collide ? kStoredColliding : kStoredApart;
      cost += price / std::min(steps, static_cast<double>(kReducedBlock));
      continue;
    }
    // Lanes a few elements apart share cache lines; further apart each needs its own, unless the
    // load is read often enough to be laid out again first.
    const double again = can_stage(a, range) ? reuse(a) : 0;
    const double apart = again >= kStagedReuseMin          ? 1 + 16 / again
                         : std::abs(stride) <= kSharedLine ? 6
                                                           : 16;
    cost += weight * (stride == 1 ? 1 : !is_opaque ? apart : a.store ? kStoredOfRun : 64);
  }
  const double n = extent(range);
  const double vectors = std::ceil(n / static_cast<double>(lanes_));
  cost *= vectors * static_cast<double>(lanes_) / n;
  if (const_extent(range) == 0) cost *= kRunTimeLanes;
  // Lanes of a reduction are folded for every element that is stored.
  return reduced ? cost + 1 + static_cast<double>(lanes_) / steps : cost;
}

void Chooser::apply(Option option) {
  current_ = apply_option(current_, option);
  options_.push_back(std::move(option));
}

// The stage that the option makes; others that hold it are made anew too.
UOp Chooser::new_stage(Option option) {
  const std::vector<UOp> before = topological(current_.roots);
  apply(std::move(option));
  for (const UOp& u : topological(current_.roots))
    if (u.op() == Op::Stage && std::ranges::find(before, u) == before.end()) return u;
  invariant(false, "a stage option makes a stage");
  return {};
}

int64_t Chooser::tile(int64_t range, int64_t size) {
  const int64_t made = current_.next_range_number();
  apply({OptionKind::Tile, range, size, {}, 0, false});
  return made;
}

bool Chooser::has_range(int64_t number) const {
  return current_.find_range(number) < current_.ranges.size();
}

bool Chooser::is_loop(int64_t number) const {
  const size_t at = current_.find_range(number);
  return at < current_.ranges.size() && current_.ranges[at].kind == RangeKind::Loop;
}

// Lanes over a range, `vectors` of them in registers; what is left of the range stays a loop.
void Chooser::vector_tile(size_t range, int64_t vectors) {
  int64_t lanes = lanes_;
  const int64_t n = const_extent(range);
  if (n > 0 && n < lanes) lanes = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(n)));
  if (lanes < 2) return;
  if (n > 0) vectors = std::clamp<int64_t>(vectors, 1, ceil_div(n, lanes));
  int64_t inner = number(range);
  if (n != lanes || kernel_.ranges[range].range.src(0).const_int() != lanes)
    inner = tile(inner, lanes * vectors);
  if (vectors > 1) {
    const int64_t lane = tile(inner, lanes);
    kind(OptionKind::Upcast, inner);
    inner = lane;
  }
  kind(OptionKind::Vec, inner);
}

// The short ranges that choose among values which do not depend on them.
uint64_t Chooser::choosing_ranges() const {
  FreeRanges free;
  add_free_ranges(kernel_, kernel_.roots, free);
  uint64_t known = 0;
  for (const UOp& u : topological(kernel_.roots)) {
    if (u.op() != Op::Where) continue;
    const uint64_t decides = free.at(u.src(0).node());
    const uint64_t values = free.at(u.src(1).node()) | free.at(u.src(2).node());
    if (std::has_single_bit(decides) && !(decides & values)) known |= decides;
  }
  uint64_t found = 0;
  int64_t copies = 1;
  known &= ~ordered_ranges(kernel_);
  for (size_t i = 0; i < kernel_.ranges.size(); ++i) {
    if (!(known & bit(i)) || const_extent(i) < 2) continue;
    if (const_extent(i) > kChoicesMax / copies) continue;
    copies *= const_extent(i);
    found |= bit(i);
  }
  return found;
}

// These ranges side by side and innermost, so that what their values share is computed once.
void Chooser::unroll_choices(uint64_t choices) {
  std::vector<int64_t> order;
  for (const bool inner : {false, true})
    for (size_t i = 0; i < kernel_.ranges.size(); ++i)
      if (((choices & bit(i)) != 0) == inner) order.push_back(number(i));
  apply({OptionKind::Order, -1, 0, order, 0, false});
  for (size_t i = 0; i < kernel_.ranges.size(); ++i)
    if (choices & bit(i)) kind(OptionKind::Upcast, number(i));
}

// Where lanes are stored apart, and what is unrolled makes runs shorter than a vector, the range
// that continues these runs is unrolled until they are as long: they are turned by squares then.
void Chooser::lengthen_runs(size_t lane, uint64_t unrolled) {
  for (const AccessInfo& a : table_.accesses) {
    if (!a.store || std::abs(a.strides[lane]) < lanes_) continue;
    int64_t run = 1;
    for (size_t i = 0; i < kernel_.ranges.size(); ++i)
      if ((unrolled & bit(i)) && a.strides[i] == 1) run = const_extent(i);
    if (run < 2 || lanes_ % run != 0) continue;
    for (size_t i = 0; i < kernel_.ranges.size(); ++i) {
      if (i == lane || (unrolled & bit(i)) || a.strides[i] != run) continue;
      if (const_extent(i) <= lanes_ / run) continue;
      kind(OptionKind::Upcast, tile(number(i), lanes_ / run));
      return;
    }
  }
}

void Chooser::elementwise() {
  if (lanes_ < 2) return;
  const size_t none = kernel_.ranges.size();
  const uint64_t choices = choosing_ranges();
  size_t best = none;
  double best_cost = 0;
  for (size_t i = 0; i < kernel_.ranges.size(); ++i) {
    if (const_extent(i) == 1 || (choices & bit(i))) continue;
    const double cost = lane_cost(i, false);
    if (best == none || cost <= best_cost) best = i, best_cost = cost;
  }
  if (!choices && turn_squares()) return;
  if (choices) unroll_choices(choices);
  if (best == none || (!choices && best_cost > 40)) return;
  const std::optional<size_t> along = walked_by_lanes(best, choices | ordered_ranges(kernel_));
  vector_tile(best, choices || along ? 1 : 4);
  if (choices) lengthen_runs(best, choices);
  if (along) put_inside(number(*along), number(best));
}

// Whether lanes along `lane` read side by side what stores have side by side along `row`.
bool Chooser::is_across(size_t lane, size_t row) const {
  bool reads = false;
  for (const AccessInfo& a : table_.accesses) {
    const int64_t along = a.strides[lane];
    if (along == kOpaqueStride || a.strides[row] == kOpaqueStride) return false;
    if (a.store) {
      if (a.strides[row] != 1 || std::abs(along) < lanes_) return false;
    } else if (along == 1) {
      reads |= std::abs(a.strides[row]) >= lanes_;
    } else if (along != 0) {
      return false;
    }
  }
  return reads;
}

// What is read along one range and stored along another goes through registers by squares: lanes
// along what is read, as many rows as are stored side by side.
bool Chooser::turn_squares() {
  int64_t rows = kByteRows;
  for (const AccessInfo& a : table_.accesses) {
    if (!a.store) continue;
    const int64_t bytes = a.node.src(1).dtype().bytes();
    if (bytes == 4) rows = lanes_;
    if ((bytes != 4 || table_.widest_bytes != 4) && (bytes != 1 || lanes_ < kByteRows))
      return false;
  }
  for (size_t lane = 0; lane < kernel_.ranges.size(); ++lane)
    for (size_t row = 0; row < kernel_.ranges.size(); ++row) {
      const int64_t columns = most(lane), size = const_extent(row);
      if (lane == row || 2 * size < rows || !is_across(lane, row)) continue;
      if (columns < rows && 2 * columns < lanes_) continue;
      const int64_t inner = size <= rows ? number(row) : tile(number(row), rows);
      vector_tile(lane, 1);
      kind(OptionKind::Upcast, inner);
      // What is stored is walked as it lies.
      const size_t outer = current_.find_range(number(lane));
      const bool is_inside = current_.find_range(number(row)) > outer;
      if (!is_inside && is_loop(number(lane)) && is_loop(number(row)))
        put_inside(number(row), number(lane));
      return true;
    }
  return false;
}

// The range, none of `unrolled`, along which a load whose lanes lie in lines of their own walks
// these lines.
std::optional<size_t> Chooser::walked_by_lanes(size_t lane, uint64_t unrolled) const {
  constexpr int64_t kNear = 16;  // elements
  for (const AccessInfo& a : table_.accesses) {
    if (a.store || a.strides[lane] == kOpaqueStride || std::abs(a.strides[lane]) < kNear) continue;
    for (size_t i = 0; i < kernel_.ranges.size(); ++i)
      if (i != lane && !(unrolled & bit(i)) && a.strides[i] != 0 &&
          std::abs(a.strides[i]) < kNear && most(i) > kNear)
        return i;
  }
  return std::nullopt;
}

// The range right inside of what is left of another as a loop.
void Chooser::put_inside(int64_t range, int64_t loop) {
  std::vector<int64_t> order;
  for (const KernelRange& r : current_.ranges) {
    const int64_t n = r.range.int_arg();
    if (n == range) continue;
    order.push_back(n);
    if (n == loop && r.kind == RangeKind::Loop) order.push_back(range);
  }
  if (order.size() == current_.ranges.size()) apply({OptionKind::Order, -1, 0, order, 0, false});
}

// The range outside of all others.
void Chooser::put_first(int64_t range) {
  std::vector<int64_t> order{range};
  for (const KernelRange& r : current_.ranges)
    if (r.range.int_arg() != range) order.push_back(r.range.int_arg());
  apply({OptionKind::Order, -1, 0, order, 0, false});
}

// The cheapest lanes among the ranges of `set`; none if it has no range of more than one element.
Chooser::LaneChoice Chooser::cheapest_lanes(uint64_t set, bool reduced) const {
  LaneChoice best;
  for (size_t i = 0; i < kernel_.ranges.size(); ++i) {
    if (!(set & bit(i)) || const_extent(i) == 1) continue;
    const double cost = lane_cost(i, reduced);
    if (!best.range || cost < best.cost) best = {i, cost};
  }
  return best;
}

// Whether every store walks ranges of its own with the reduction's result: the reduced range is
// walked, and then another like it.
bool Chooser::is_row(const ClosureInfo& reduction) const {
  return std::ranges::all_of(table_.closures, [&](const ClosureInfo& c) {
    return !c.store || (c.own & ~reduction.below) != 0;
  });
}

// Whether `outer` reduces a value that is made of `inner`'s result and the same for every output.
bool Chooser::reads(const ClosureInfo& outer, const ClosureInfo& inner) const {
  const uint64_t free = inner.below & ~inner.own;
  return reaches(outer.node, inner.node) && free && (free & ~outer.own) == 0;
}

// The range along which a staged reduction and what it fills cost the least.
std::optional<size_t> Chooser::lanes_of_fill(const ClosureInfo& fill) const {
  std::optional<size_t> best;
  double best_cost = kLaneCostMax;
  for (size_t i = 0; i < kernel_.ranges.size(); ++i) {
    if (!(fill.below & bit(i)) || const_extent(i) * 2 < lanes_ || table_.opaque & bit(i)) continue;
    double cost = fill.own & bit(i) ? 1 : 0;  // they are folded
    for (const AccessInfo& a : table_.accesses) {
      if (a.store || !reaches(fill.node, a.node)) continue;
      const int64_t stride = a.strides[i];
      cost += stride == 0 ? 0 : stride == 1 ? 1 : stride == kOpaqueStride ? 64 : 16;
    }
    const auto lanes = static_cast<double>(lanes_);
    cost *= std::ceil(extent(i) / lanes) * lanes / extent(i);
    if (cost < best_cost) best = i, best_cost = cost;
  }
  return best;
}

// Such a value is computed once, before the contraction that reads it; what is left is one
// reduction.
void Chooser::staged_operand(const ClosureInfo& inner) {
  const std::vector<UOp> order = topological(kernel_.roots);
  const int64_t value = std::find(order.begin(), order.end(), inner.node) - order.begin();
  apply({OptionKind::Stage, -1, value, {}, 0, true});
  kernel_ = current_;
  table_ = access_table(kernel_);
  // The first reduction is the one that fills the stage now.
  const auto fill = std::ranges::find_if(table_.closures, [](const auto& c) { return !c.store; });
  const std::optional<size_t> lane = lanes_of_fill(*fill);
  for (const ClosureInfo& c : table_.closures) {
    const bool outermost =
        !c.store &&
        std::none_of(table_.closures.begin(), table_.closures.end(), [&](const ClosureInfo& other) {
          return !other.store && !(other.node == c.node) && reaches(other.node, c.node);
        });
    if (outermost) {
      contraction(c);
      break;
    }
  }
  // Last, since a dimension of the stage that is split is no longer read as it lies.
  if (lane && lanes_ > 1) vector_tile(*lane, kFillVectors);
}

OptimisedKernel choose_by_family(const Kernel& kernel, const Machine& target) {
  Chooser words(kernel, target, true);
  words.run();
  if (!words.has_scattered_words()) return words.take();
  Chooser others(kernel, target, false);
  others.run();
  return others.take();
}

}  // namespace tiny
