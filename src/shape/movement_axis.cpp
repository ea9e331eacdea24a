#include "shape/movement_axis.h"

#include "shape/shape.h"

namespace tiny {

namespace {

std::optional<size_t> axis_before_reshape(const UOp& reshape, size_t axis) {
  const Shape& to = shape_of(reshape);
  const Shape& from = shape_of(reshape.src(0));
  Dim wanted = 1;
  for (size_t i = 0; i < axis; ++i) wanted = wanted * to[i];
  Dim before = 1;
  for (size_t k = 0; k < from.size(); ++k) {
    if (before == wanted && from[k] == to[axis]) return k;
    before = before * from[k];
  }
  return std::nullopt;
}

}  // namespace

std::optional<size_t> axis_below(const UOp& movement, size_t axis) {
  switch (movement.op()) {
    case Op::Expand:
      if (shape_of(movement)[axis] == shape_of(movement.src(0))[axis]) return axis;
      return std::nullopt;
    case Op::Permute:
      return static_cast<size_t>(movement.ints()[axis]);
    case Op::Reshape:
      return axis_before_reshape(movement, axis);
    case Op::Shrink:
    case Op::Flip:
    case Op::Pad:
      return axis;
    default:
      return std::nullopt;
  }
}

bool repeats(const UOp& x, size_t axis) {
  UOp node = x;
  std::optional<size_t> at = axis;
  while (at && (has(node.op(), kMovement) || node.op() == Op::Cast)) {
    if (node.op() == Op::Cast) {
      node = UOp(node.src(0));
      continue;
    }
    const bool grows =
        node.op() == Op::Expand && shape_of(node.src(0))[*at].is(1) && !shape_of(node)[*at].is(1);
    if (grows) return true;
    if (node.op() == Op::Pad) return false;
    at = axis_below(node, *at);
    node = UOp(node.src(0));
  }
  return false;
}

}  // namespace tiny
