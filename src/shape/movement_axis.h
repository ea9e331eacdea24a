// Axes through movement, and movement by itself.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "ir/uop.h"

namespace tiny {

// The axis of a movement node's source that the axis of its result is, whole or in part; none if it
// is made of several, or of none.
std::optional<size_t> axis_below(const UOp& movement, size_t axis);

// Whether elements of a movement node's source are in its result more than once: it is expanded, or
// windows of it overlap.
bool repeats_elements(const UOp& movement);

// Whether movement and casts alone make all elements along the axis the same one.
bool repeats(const UOp& x, size_t axis);

// Whether all elements along the axis are equal, as far as a few operations show.
bool is_same_along(const UOp& value, size_t axis);

// Whether all elements are equal, as far as that shows.
bool is_uniform(const UOp& value);

// The first element along these axes, which are as many as the value has.
UOp first_along(const UOp& value, const std::vector<bool>& axes);

// What `top` is movement of, and that movement, outermost first, which goes to the end of `moves`.
UOp below_movement(const UOp& top, std::vector<UOp>& moves);
UOp below_movement(const UOp& top);

// The same movement of another value of the same shape.
UOp moved(std::span<const UOp> moves, UOp value);

}  // namespace tiny
