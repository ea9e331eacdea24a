#include "shape/movement_axis.h"

#include <algorithm>
#include <utility>

#include "shape/shape.h"
#include "shape/view.h"

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

constexpr int kSameDepth = 6;  // operations that are looked through

// Whether all elements are equal.
bool is_uniform_within(const UOp& value, int depth) {
  UOp node = value;
  for (; has(node.op(), kMovement); node = UOp(node.src(0)))
    if (node.op() == Op::Pad) return false;
  if (node.is_const() || product(shape_of(node)).is(1)) return true;
  return depth > 0 && has(node.op(), kElementwise) &&
         std::ranges::all_of(node.src(),
                             [&](const UOp& s) { return is_uniform_within(s, depth - 1); });
}

// Whether it adds zeros before or behind the elements along the axis.
bool pads(const UOp& movement, size_t axis) {
  if (movement.op() != Op::Pad) return false;
  const Shape p = movement_dims(movement);
  return !p[axis].is(0) || !p[p.size() / 2 + axis].is(0);
}

bool is_same_within(const UOp& value, size_t axis, int depth) {
  UOp node = value;
  std::optional<size_t> at = axis;
  for (; has(node.op(), kMovement); node = UOp(node.src(0))) {
    if (shape_of(node)[*at].is(1) || repeats(node, *at)) return true;
    if (pads(node, *at)) return false;
    at = axis_below(node, *at);
    if (!at) return is_uniform_within(UOp(node.src(0)), depth);
  }
  if (node.is_const() || shape_of(node)[*at].is(1)) return true;
  if (depth == 0 || !has(node.op(), kElementwise)) return false;
  return std::ranges::all_of(node.src(),
                             [&](const UOp& s) { return is_same_within(s, *at, depth - 1); });
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
    case Op::Alias:
      return axis;
    case Op::Unfold: {
      const auto first = static_cast<size_t>(movement.ints()[0]);
      const size_t n = movement.ints().size() / 4;
      if (axis < first) return axis;
      if (axis < first + 2 * n) return std::nullopt;
      return axis - n;
    }
    default:
      return std::nullopt;
  }
}

bool repeats_elements(const UOp& movement) {
  if (movement.op() == Op::Expand) return true;
  if (movement.op() == Op::AsStrided) {
    const ViewArg& arg = movement.view_arg();
    return !is_nested({to_shape(arg.shape), to_shape(arg.strides), 0});
  }
  if (movement.op() != Op::Unfold) return false;
  return std::ranges::any_of(unfolding(movement).along, [](const Unfolding::Along& w) {
    return w.stride <= (w.kernel - 1) * w.dilation;
  });
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
    if (pads(node, *at)) return false;
    at = axis_below(node, *at);
    node = UOp(node.src(0));
  }
  return false;
}

bool is_same_along(const UOp& value, size_t axis) {
  return is_same_within(value, axis, kSameDepth);
}

bool is_uniform(const UOp& value) {
  return is_uniform_within(value, kSameDepth);
}

UOp first_along(const UOp& value, const std::vector<bool>& axes) {
  const Shape& shape = shape_of(value);
  Shape end = shape;
  bool any = false;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (!axes[i] || shape[i].is(1)) continue;
    end[i] = 1;
    any = true;
  }
  return any ? make_shrink(value, Shape(shape.size(), 0), end) : value;
}

UOp below_movement(const UOp& top, std::vector<UOp>& moves) {
  UOp node = top;
  for (; has(node.op(), kMovement); node = UOp(node.src(0))) moves.push_back(node);
  return node;
}

UOp below_movement(const UOp& top) {
  UOp node = top;
  while (has(node.op(), kMovement)) node = UOp(node.src(0));
  return node;
}

UOp moved(std::span<const UOp> moves, UOp value) {
  for (size_t i = moves.size(); i-- > 0;) {
    std::vector<UOp> src(moves[i].src().begin(), moves[i].src().end());
    src[0] = std::move(value);
    value = moves[i].graph().make(moves[i].op(), std::move(src), moves[i].arg());
  }
  return value;
}

}  // namespace tiny
