// Axes through movement.
#pragma once

#include <cstddef>
#include <optional>

#include "ir/uop.h"

namespace tiny {

// The axis of a movement node's source that the axis of its result is, whole or in part; none if it
// is made of several, or of none.
std::optional<size_t> axis_below(const UOp& movement, size_t axis);

// Whether movement and casts alone make all elements along the axis the same one.
bool repeats(const UOp& x, size_t axis);

}  // namespace tiny
