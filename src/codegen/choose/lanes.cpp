#include "codegen/choose/lanes.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "ir/picked_lanes.h"

namespace tiny {

namespace {

// What it costs to store lanes that lie apart, in loads of a vector.
constexpr double kStoredApart = 32;
constexpr double kStoredColliding = 512;  // where a tile's lines push each other out
constexpr double kStoredOfRun = 20;       // lanes apart by a size of the run, one by one
// Lanes so many elements apart share lines.
constexpr int64_t kSharedLine = 4;
constexpr double kRunTimeLanes = 1.05;  // some of the last vector's are not used
constexpr double kOpaqueLanes = 1e9;    // along an index that is no sum of ranges
constexpr double kGatheredLoad = 64;    // a load whose lanes have addresses of their own
constexpr double kApartLoad = 16;       // that has a line for each lane
constexpr double kNearLoad = 6;         // whose lanes share lines

// Whether the lines of two vectors of lanes `stride` elements apart are more than their sets of the
// first level of cache hold: its ways are a page each.
bool are_lines_colliding(const Editor& edit, int64_t stride, int64_t bytes) {
  constexpr int64_t kPage = 4096;
  const int64_t sets = kPage / std::gcd(stride * bytes, kPage);
  return sets * (edit.machine().l1_bytes / kPage) < 2 * edit.lanes();
}

}  // namespace

namespace {

// Of what overlaps a panel has at most so many elements for each that is read: windows of which
// only padding reaches into the next line.
constexpr double kCopiedTwice = 1.25;

// What a load is whose lanes share lines: as many registers as hold them, and what picks the lanes
// out of these (ir/picked_lanes.h).
double near_load(const Editor& edit, const AccessInfo& load, int64_t stride) {
  const int64_t step = std::abs(stride), bytes = load.node.dtype().bytes();
  if (load.store || !are_picked(edit.machine(), step, edit.lanes(), bytes)) return kNearLoad;
  return std::min(static_cast<double>(2 * step - 1), kNearLoad);
}

}  // namespace

bool can_stage(const Editor& edit, const AccessInfo& load, size_t lane) {
  if (load.node.op() != Op::Load || !load.inside_reduction) return false;
  const double step = std::abs(static_cast<double>(load.strides[lane]));
  for (size_t i = 0; i < load.strides.size(); ++i) {
    if (load.strides[i] == kOpaqueStride) return false;
    if (i == lane || !edit.kernel().ranges[i].reduced) continue;
    const double other = std::abs(static_cast<double>(load.strides[i]));
    if (other * edit.extent(i) > kCopiedTwice * step && other * (edit.extent(i) - 1) >= step &&
        step * (edit.extent(lane) - 1) >= other && other > 0 && step > 0)
      return false;
  }
  int same = 0;
  for (const AccessInfo& a : edit.table().accesses)
    same += a.node.op() == Op::Load && a.node.src(0) == load.node.src(0) ? 1 : 0;
  return same == 1;
}

double reuse(const Editor& edit, const AccessInfo& load, RangeSet space) {
  double times = 1;
  for (size_t i = 0; i < load.strides.size(); ++i)
    if (load.strides[i] == 0 && (space & bit(i))) times *= edit.extent(i);
  return times;
}

bool lies_in_panels(const Editor& edit, const AccessInfo& load, size_t lane, size_t* panels) {
  const int64_t width = edit.const_extent(lane);
  if (load.strides[lane] != 1 || width % edit.lanes() != 0 || width > kVectorsMax * edit.lanes())
    return false;
  int64_t nearest = INT64_MAX;
  int64_t farthest = 0;
  *panels = lane;
  for (size_t i = 0; i < edit.kernel().ranges.size(); ++i) {
    const int64_t stride = load.strides[i];
    if (i == lane || stride == 0) continue;
    if (edit.const_extent(i) == 0 || stride == kOpaqueStride) return false;
    if (edit.kernel().ranges[i].reduced) {
      nearest = std::min(nearest, stride);
      farthest = std::max(farthest, stride * edit.const_extent(i));
    }
  }
  for (size_t i = 0; i < edit.kernel().ranges.size(); ++i)
    if (i != lane && !edit.kernel().ranges[i].reduced && load.strides[i] == farthest) *panels = i;
  return nearest == width;
}

double lane_cost(const Editor& edit, size_t range, bool reduced, double steps, RangeSet space) {
  double cost = edit.table().opaque & bit(range) ? kOpaqueLanes : 0;
  // Panels that lie in place are walked once, and are of no use to other lanes.
  const bool is_packed = std::ranges::any_of(edit.table().accesses, [&](const AccessInfo& a) {
    size_t panels = 0;
    return !a.store && a.inside_reduction && lies_in_panels(edit, a, range, &panels);
  });
  for (const AccessInfo& a : edit.table().accesses) {
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
      const bool collide =
          !is_opaque && are_lines_colliding(edit, stride, a.node.src(1).dtype().bytes());
      const double price = collide ? kStoredColliding : kStoredApart;
      cost += price / std::min(steps, static_cast<double>(kReducedBlock));
      continue;
    }
    // Lanes a few elements apart share cache lines; further apart each needs its own, unless the
    // load is read often enough to be laid out again first.
    const double again = can_stage(edit, a, range) ? reuse(edit, a, space) : 0;
    const double apart = again >= kStagedReuseMin          ? 1 + kApartLoad / again
                         : std::abs(stride) <= kSharedLine ? near_load(edit, a, stride)
                                                           : kApartLoad;
    cost += weight * (stride == 1  ? 1
                      : !is_opaque ? apart
                      : a.store    ? kStoredOfRun
                                   : kGatheredLoad);
  }
  const double n = edit.extent(range);
  const double vectors = std::ceil(n / static_cast<double>(edit.lanes()));
  cost *= vectors * static_cast<double>(edit.lanes()) / n;
  if (edit.const_extent(range) == 0) cost *= kRunTimeLanes;
  // Lanes of a reduction are folded for every element that is stored.
  return reduced ? cost + 1 + static_cast<double>(edit.lanes()) / steps : cost;
}

LaneChoice cheapest_lanes(const Editor& edit, RangeSet set, bool reduced) {
  LaneChoice best;
  for (size_t i = 0; i < edit.kernel().ranges.size(); ++i) {
    if (!(set & bit(i)) || edit.const_extent(i) == 1) continue;
    const double cost = lane_cost(edit, i, reduced);
    if (!best.range || cost < best.cost) best = {i, cost};
  }
  return best;
}

}  // namespace tiny
