#include "cost/cut_tiles.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

#include "cost/footprint.h"
#include "ir/affine.h"

namespace tiny {

CutTiles::CutTiles(const WalkedKernel& walk) : walk_(walk) {
  for (const UOp& fact : walk.kernel.facts) {
    RangeSet ranges = 0;
    for (const UOp& u : topological({&fact, 1}))
      if (u.op() == Op::Range) ranges |= bit(walk.kernel.position(u));
    const Bodies bodies = bodies_of(ranges);
    tiles_.push_back({ranges, bodies, steps_of(fact, ranges)});
  }
}

// None of a fact about steps that others tell as well.
CutTiles::Steps CutTiles::steps_of(const UOp& fact, RangeSet ranges) const {
  const Steps steps{ranges & (walk_.loops | walk_.unrolled), 1};
  const std::optional<Affine> within = affine(fact);
  const auto is_same = [&](const CutTile& c) { return c.steps.ranges == steps.ranges; };
  if (!within || !(ranges & walk_.unrolled) || std::ranges::any_of(tiles_, is_same)) return {};
  double nearest = kCounted;
  for (const AffineTerm& term : within->terms) {
    if (term.atom.op() != Op::Range || term.coefficient >= 0) return {};
    const size_t range = walk_.kernel.position(term.atom);
    if (!walk_.kernel.ranges[range].range.src(0).is_const()) return {};
    if (steps.ranges & bit(range))
      nearest = std::min(nearest, -static_cast<double>(term.coefficient));
  }
  const double count = std::ceil(static_cast<double>(within->constant + 1) / nearest);
  return {steps.ranges, std::min(1.0, count / walk_.product(steps.ranges))};
}

// Of one fact of several about the same loop; none of the others.
CutTiles::Bodies CutTiles::bodies_of(RangeSet fact) const {
  Bodies found{0, fact & walk_.unrolled};
  for (RangeSet set = fact & walk_.loops; set; set &= set - 1) {
    const auto i = static_cast<size_t>(std::countr_zero(set));
    if (!walk_.kernel.ranges[i].range.src(0).is_const()) found.loop |= bit(i);
  }
  const auto is_same = [&](const CutTile& c) { return c.bodies.loop == found.loop; };
  const bool is_new = found.loop && found.steps && std::ranges::none_of(tiles_, is_same);
  return is_new ? found : Bodies();
}

double CutTiles::share_within(RangeSet walked) const {
  double share = 1;
  for (const CutTile& tile : tiles_)
    if (tile.steps.ranges && (tile.steps.ranges & ~walked) == 0) share *= tile.steps.share;
  return share;
}

bool CutTiles::is_cut(size_t range, double fewer) const {
  return std::ranges::any_of(tiles_, [&](const CutTile& tile) {
    const RangeSet ranges = tile.ranges;
    return (ranges & bit(range)) && walk_.product(ranges & ~bit(range)) < fewer;
  });
}

double CutTiles::bodies(RangeSet free) const {
  double bodies = 1;
  for (const CutTile& tile : tiles_) {
    const Bodies& b = tile.bodies;
    const double steps = walk_.product(b.steps);
    if (free & b.steps)
      bodies *= (steps + 1) / 2;
    else if (free & b.loop)
      bodies *= steps;
  }
  return bodies;
}

}  // namespace tiny
