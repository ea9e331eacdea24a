// Movement of one axis of a value.
#pragma once

#include <cstddef>
#include <vector>

#include "ir/uop.h"
#include "shape/movement_axis.h"
#include "shape/shape.h"

namespace tiny {

// The node's shape, with another size of the axis.
Shape with_axis(const UOp& node, size_t axis, const Dim& size);
// The first element along the axis, which stays with size 1.
UOp first_of(const UOp& node, size_t axis);
// Of axes along which the node repeats one element each: movement of what is there once, where that
// shows, so that its adjoint is summed and not padded.
UOp once_along(const UOp& node, const std::vector<bool>& axes);
UOp once_of(const UOp& node, size_t axis);
// What the node repeats along the axis, `size` times.
UOp widened(const UOp& node, size_t axis, const Dim& size);
// Zeros before and after.
UOp padded_axis(const UOp& node, size_t axis, const Dim& before, const Dim& after);
// Of an axis of size 1.
UOp without_axis(const UOp& node, size_t axis);
UOp split_axis(const UOp& node, size_t axis, const Dim& outer, const Dim& inner);
UOp flipped_axis(const UOp& node, size_t axis);

// Movement along an axis of the elements that the node has once: along others along which it
// repeats they repeat again.  So the adjoint of what repeats is summed before it is moved.
template <typename F>
UOp moved_once(const UOp& node, size_t axis, F move) {
  const Shape& whole = shape_of(node);
  std::vector<bool> same(whole.size());
  for (size_t i = 0; i < whole.size(); ++i)
    same[i] = i != axis && !whole[i].is(1) && repeats(node, i);
  const UOp out = move(once_along(node, same));
  Shape shape = shape_of(out);
  for (size_t i = 0; i < whole.size(); ++i)
    if (same[i]) shape[i] = whole[i];
  return make_expand(out, shape);
}

}  // namespace tiny
