// Lists for any kernel: lanes over a range, tiles in registers, repeated steps and orders, one step
// after the other while the estimate falls, from what a family chose and from lanes alone.
#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "base/sort.h"
#include "codegen/choose/strategies.h"
#include "cost/access_table.h"
#include "cost/limit.h"
#include "ir/bounds.h"

namespace tiny {

namespace {

// A list so near to the least that the kernel could take is not looked at again: what it could gain
// would hardly make up for the estimate's errors (kClearly).
constexpr double kNearLimit = 1.4;
// The time that lists are looked for follows what there is to gain: a list takes some microseconds
// to estimate.
constexpr double kTrySeconds = 40e-6;
constexpr int kTriesMin = 8;
constexpr int kTriesMax = 96;
constexpr double kGainMin = 1.03;  // of a step
constexpr size_t kStarts = 2;      // ranges of lanes that are tried further
constexpr int64_t kWholeMax = 16;  // a range of no more elements may be repeated whole
constexpr int64_t kTiles[] = {2, 3, 6, 8, 12, 16};
constexpr double kSizeMax = 1e15;  // larger ones are not told apart
constexpr int64_t kFirstTile = 4;
constexpr int64_t kWholeTilesMin = 6;  // beside one that is cut

Option tile(int64_t range, int64_t size) {
  return {OptionKind::Tile, range, size, {}, 0, false};
}
Option kind(OptionKind what, int64_t range) {
  return {what, range, 0, {}, 0, false};
}

class Climber {
 public:
  // `tries`: so many lists may be estimated.
  Climber(const Machine& target, int tries) : target_(target), tries_(tries) {}

  // Steps from here while each saves something.
  Proposal climb(Proposal from) {
    while (tries_ > 0) {
      std::optional<Proposal> best = best_step(from);
      if (!best || best->cost.seconds * kGainMin > from.cost.seconds) break;
      from = std::move(*best);
    }
    return from;
  }

  // Lanes over each range alone, the cheapest first.
  std::vector<Proposal> with_lanes(const Proposal& none) {
    std::vector<Proposal> found;
    const Kernel& kernel = none.made.kernel;
    const AccessTable table = access_table(kernel);
    if (!vectorises(kernel, target_)) return found;
    for (size_t i = 0; i < kernel.ranges.size(); ++i) {
      const std::vector<Option> options = lanes_over(kernel, table, i);
      if (options.empty()) continue;
      if (auto made = tried(none, options)) found.push_back(std::move(*made));
    }
    sort_stable(found, {}, [](const Proposal& p) { return p.cost.seconds; });
    return found;
  }

 private:
  // What gives a range lanes; nothing where it cannot have any.
  std::vector<Option> lanes_over(const Kernel& kernel, const AccessTable& table, size_t i) const {
    const auto most = static_cast<int64_t>(std::min(table.extents[i], kSizeMax));
    const int64_t lanes = table.lanes_along(i, target_.vector_bytes);
    if (most < 2 || lanes < 2 || !table.may_hold_lanes(i)) return {};
    const int64_t width =
        std::min(lanes, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(most))));
    const int64_t number = kernel.ranges[i].range.int_arg();
    if (kernel.ranges[i].range.src(0).is_const_int(width)) return {kind(OptionKind::Vec, number)};
    return {tile(number, width), kind(OptionKind::Vec, kernel.next_range_number())};
  }

  std::optional<Proposal> tried(const Proposal& from, std::span<const Option> options) {
    --tries_;
    return extended(from, options, target_);
  }
  // Whether it is the best so far.
  bool consider(const Proposal& from, std::vector<Option> options, std::optional<Proposal>& best) {
    std::optional<Proposal> made = tried(from, options);
    if (!made || (best && made->cost.seconds >= best->cost.seconds)) return false;
    best = std::move(made);
    return true;
  }

  // A range's steps repeated: the whole range, or tiles of one size.
  bool repeat(const Proposal& from, size_t range, int64_t size, std::optional<Proposal>& best) {
    const Kernel& kernel = from.made.kernel;
    const KernelRange& r = kernel.ranges[range];
    const OptionKind what = r.reduced ? OptionKind::Unroll : OptionKind::Upcast;
    const int64_t number = r.range.int_arg();
    // Few tiles of which the last is cut are code of two kinds; that of a run's size is cut mostly.
    const UOp& extent = r.range.src(0);
    const bool is_cut = !extent.is_const() || extent.const_int() % size != 0;
    if (is_cut && bounds(extent).hi < kWholeTilesMin * size) return false;
    if (extent.is_const_int(size)) return consider(from, {kind(what, number)}, best);
    return consider(from, {tile(number, size), kind(what, kernel.next_range_number())}, best);
  }

  // Lanes where none are yet: those of a sum that is the same for many outputs are not theirs.
  void lanes_beside(const Proposal& from, std::optional<Proposal>& best) {
    const Kernel& kernel = from.made.kernel;
    RangeSet wide = 0;
    for (size_t i = 0; i < kernel.ranges.size(); ++i)
      if (kernel.ranges[i].kind == RangeKind::Vec) wide |= bit(i);
    if (!wide) return;
    const AccessTable table = access_table(kernel);
    RangeSet beside = 0;  // what is computed over ranges that have lanes is so over these as well
    size_t first = 0;
    for (size_t k = 0; k < table.order.size(); ++k) {
      const UOp& u = table.order[k];
      RangeSet over = table.free[k];
      for (size_t s = 1; closes_ranges(u) && s < u.src().size(); ++s)
        over |= table.free[table.sources[first + s]];
      first += u.src().size();
      if (over & wide) beside |= over;
    }
    for (size_t i = 0; i < kernel.ranges.size() && tries_ > 0; ++i) {
      if (kernel.ranges[i].kind != RangeKind::Loop || (beside & bit(i))) continue;
      const std::vector<Option> options = lanes_over(kernel, table, i);
      if (!options.empty()) consider(from, options, best);
    }
  }

  // The best of one step: lanes, the range whose steps are best repeated, with its best size, or
  // two loops changed.
  std::optional<Proposal> best_step(const Proposal& from) {
    std::optional<Proposal> best;
    const Kernel& kernel = from.made.kernel;
    lanes_beside(from, best);
    size_t repeated = kernel.ranges.size();
    int64_t size_of_it = 0;
    for (size_t i = 0; i < kernel.ranges.size() && tries_ > 0; ++i) {
      const KernelRange& r = kernel.ranges[i];
      if (r.kind != RangeKind::Loop) continue;
      const UOp& extent = r.range.src(0);
      const int64_t n = extent.is_const() ? extent.const_int() : kWholeMax + 1;
      if (n < 2) continue;
      const int64_t size = n <= kWholeMax ? n : kFirstTile;
      if (repeat(from, i, size, best)) repeated = i, size_of_it = size;
      if (i > 0 && kernel.ranges[i - 1].kind == RangeKind::Loop) {
        const int64_t outer = kernel.ranges[i - 1].range.int_arg();
        const Option order{OptionKind::Order, -1, 0, {r.range.int_arg(), outer}, 0, false};
        if (consider(from, {order}, best)) repeated = kernel.ranges.size();
      }
    }
    if (repeated == kernel.ranges.size()) return best;
    const UOp& extent = kernel.ranges[repeated].range.src(0);
    const int64_t n = extent.is_const() ? extent.const_int() : INT64_MAX;
    for (const int64_t size : kTiles)
      if (size != size_of_it && size < n && tries_ > 0) repeat(from, repeated, size, best);
    return best;
  }

  const Machine& target_;
  int tries_;
};

}  // namespace

void propose_generic(const Seen& seen, std::vector<Proposal>& to) {
  const double now = to.front().cost.seconds - seen.machine.launch_seconds;
  // Too few are worth it however small the limit is.
  if (now * seen.runs < kTriesMin * kTrySeconds) return;
  const double limit = limit_seconds(seen.table, seen.machine);
  const double worth = (now - kNearLimit * limit) * seen.runs / kTrySeconds;
  if (!(worth >= kTriesMin)) return;  // nor where sizes are beyond numbers
  Climber climber(seen.machine, static_cast<int>(std::min(worth, double{kTriesMax})));
  const auto climb = [&](Proposal start) {
    Proposal found = climber.climb(std::move(start));
    if (found.made.options != to.front().made.options) to.push_back(std::move(found));
  };
  climb(to.front());  // whose form was measured: what is left of the time is for others
  const Proposal none = propose({{}, seen.kernel, {}}, seen.machine);
  std::vector<Proposal> starts = climber.with_lanes(none);
  if (starts.size() > kStarts) starts.resize(kStarts);
  if (starts.empty()) starts.push_back(none);
  for (Proposal& start : starts) climb(std::move(start));
}

}  // namespace tiny
