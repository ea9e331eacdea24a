// What lanes along a range cost: loads and stores whose lanes do not lie side by side are made one
// by one, or are copied to a panel first.
#pragma once

#include <cstdint>
#include <optional>

#include "codegen/choose/editor.h"

namespace tiny {

// How often a load is read before lanes along another of its axes are worth a copy.
inline constexpr double kStagedReuseMin = 32;
// Lanes that cost more than this are not worth having where there are several reductions.
inline constexpr double kLaneCostMax = 30;
// Elements of a reduced range in a panel, unless few more are all.
inline constexpr int64_t kReducedBlock = 256;
inline constexpr int64_t kVectorsMax = 4;  // of a register tile
inline constexpr RangeSet kAllRanges = ~RangeSet{0};

// What lanes along `range` cost, over all accesses; `steps`: arithmetic per element stored,
// `space`: the ranges that the kernel's sum runs over.
double lane_cost(const Editor& edit, size_t range, bool reduced, double steps = 1,
                 RangeSet space = kAllRanges);

struct LaneChoice {
  std::optional<size_t> range;
  double cost = 0;
};
// The cheapest lanes among the ranges of `set`; none if it has no range of more than one element.
LaneChoice cheapest_lanes(const Editor& edit, RangeSet set, bool reduced);

// Whether a panel with lanes along `lane` holds few elements twice.  Steps of a window share what
// they read: a copy of theirs would not have lanes side by side.
bool can_stage(const Editor& edit, const AccessInfo& load, size_t lane);

// How often each element is read.
double reuse(const Editor& edit, const AccessInfo& load, RangeSet space = kAllRanges);

// Whether the columns of a register tile lie side by side, one step of the reduction after the
// other; `panels` is the range whose steps are such panels, or `lane` if there is one.
bool lies_in_panels(const Editor& edit, const AccessInfo& load, size_t lane, size_t* panels);

}  // namespace tiny
