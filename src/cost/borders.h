// Where an access reaches beyond an axis of what it reads: the turns of loops that are written
// apart for it, and those that find out as they run.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "ir/affine.h"

namespace tiny {

// Turns of a loop that are written apart on either side at most (codegen/linearize/peeling.h):
// which lanes and copies are within the axis is known of each then.
inline constexpr int64_t kPeeledMax = 3;

// Elements by which an index is before the first one of an axis, and behind the last, at the most.
struct Reach {
  double before = 0;
  double behind = 0;
  double most() const { return before > behind ? before : behind; }
};
// `facts` are expressions that are not negative where the access happens.
Reach reach_beyond(const UOp& index, int64_t size, std::span<const UOp> facts);

// How many turns of the loop over `range` reach so far; infinitely many where the index is no sum.
double turns_beyond(const Reach& reach, const std::optional<Affine>& index, const UOp& range);

}  // namespace tiny
