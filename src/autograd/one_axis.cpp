#include "autograd/one_axis.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <vector>

#include "ir/build.h"
#include "shape/movement_axis.h"

namespace tiny {

Shape with_axis(const UOp& node, size_t axis, const Dim& size) {
  Shape shape = shape_of(node);
  shape[axis] = size;
  return shape;
}

UOp first_of(const UOp& node, size_t axis) {
  std::vector<bool> axes(shape_of(node).size());
  axes[axis] = true;
  return first_along(node, axes);
}

UOp widened(const UOp& node, size_t axis, const Dim& size) {
  return make_expand(once_of(node, axis), with_axis(node, axis, size));
}

namespace {

// With size 1 along the axes, where those of `sizes` are as many.
Shape once(Shape sizes, const std::vector<bool>& axes, const Dim& size = 1) {
  for (size_t i = 0; i < axes.size(); ++i)
    if (axes[i]) sizes[i] = size;
  return sizes;
}

// The axes of a movement node's source that those of its own are; none if one is not one of them.
// Of no elements at all any axis could be any.
std::optional<std::vector<bool>> below(const UOp& movement, const std::vector<bool>& axes) {
  if (product(shape_of(movement)).is(0)) return std::nullopt;
  std::vector<bool> out(shape_of(movement.src(0)).size());
  for (size_t i = 0; i < axes.size(); ++i) {
    if (!axes[i]) continue;
    const std::optional<size_t> at = axis_below(movement, i);
    if (!at) return std::nullopt;
    out[*at] = true;
  }
  return out;
}

UOp once_below_expand(const UOp& expand, const std::vector<bool>& axes) {
  const Shape& from = shape_of(expand.src(0));
  std::vector<bool> others = axes;
  for (size_t i = 0; i < axes.size(); ++i) others[i] = axes[i] && !from[i].is(1);
  return make_expand(once_along(expand.src(0), others), once(shape_of(expand), axes));
}

}  // namespace

UOp once_along(const UOp& node, const std::vector<bool>& axes) {
  if (std::ranges::none_of(axes, std::identity())) return node;
  if (node.op() == Op::Cast) return cast(once_along(node.src(0), axes), node.dtype());
  if (node.op() == Op::Expand) return once_below_expand(node, axes);
  const auto known = has(node.op(), kMovement) ? below(node, axes) : std::nullopt;
  if (!known) return first_along(node, axes);
  const auto source = [&] { return once_along(node.src(0), *known); };
  const Shape shape = once(shape_of(node), axes);
  switch (node.op()) {
    case Op::Reshape:
      return make_reshape(source(), shape);
    case Op::Permute:
      return make_permute(source(), node.ints());
    case Op::Flip:
      return make_flip(source(), node.ints());
    case Op::Unfold:
      return make_unfold(source(), unfolding(node));
    case Op::Pad:
    case Op::Shrink: {
      const Shape sides = movement_dims(node);
      const auto half = sides.begin() + std::ssize(axes);
      const Shape first = once({sides.begin(), half}, axes, 0);
      const Shape last{half, sides.end()};
      if (node.op() == Op::Pad) return make_pad(source(), first, once(last, axes, 0));
      return make_shrink(source(), first, once(last, axes));
    }
    default:
      return first_along(node, axes);
  }
}

UOp once_of(const UOp& node, size_t axis) {
  std::vector<bool> axes(shape_of(node).size());
  axes[axis] = true;
  return once_along(node, axes);
}

UOp padded_axis(const UOp& node, size_t axis, const Dim& before, const Dim& after) {
  Shape front(shape_of(node).size(), Dim(0)), back = front;
  front[axis] = before;
  back[axis] = after;
  return make_pad(node, front, back);
}

UOp without_axis(const UOp& node, size_t axis) {
  Shape shape = shape_of(node);
  shape.erase(shape.begin() + static_cast<ptrdiff_t>(axis));
  return make_reshape(node, shape);
}

UOp split_axis(const UOp& node, size_t axis, const Dim& outer, const Dim& inner) {
  Shape shape = with_axis(node, axis, outer);
  shape.insert(shape.begin() + static_cast<ptrdiff_t>(axis) + 1, inner);
  return make_reshape(node, shape);
}

UOp flipped_axis(const UOp& node, size_t axis) {
  return shape_of(node)[axis].is(1) ? node : make_flip(node, {static_cast<int64_t>(axis)});
}

}  // namespace tiny
