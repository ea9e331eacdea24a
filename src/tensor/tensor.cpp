#include "tensor/tensor.h"

#include <algorithm>
#include <span>

#include "base/error.h"
#include "base/sort.h"
#include "shape/strides.h"

namespace tiny {

Tensor::Tensor(Ref<Context> context, UOp node)
    : context_(std::move(context)),
      cell_(make_ref<Cell>(context_, node)),
      view_(row_major(shape_of(node))),
      node_(std::move(node)),
      seen_(node_) {
}

Tensor Tensor::of_memory(Ref<Context> context, const UOp& buffer, const View& view, bool is_own) {
  Tensor t;
  t.context_ = std::move(context);
  t.cell_ = make_ref<Cell>(t.context_, buffer, is_own);
  t.view_ = view;
  t.node_ = view_of_memory(buffer, view);
  t.seen_ = buffer;
  return t;
}

Tensor Tensor::weak_int(Ref<Context> context, const Dim& value) {
  const UOp node = value.uop(context->graph());
  Tensor t(std::move(context), node);
  t.weak_ = t.is_number_ = true;
  return t;
}

Tensor Tensor::weak_float(Ref<Context> context, double value) {
  const UOp node = context->graph().constant(kFloat32, value);
  Tensor t(std::move(context), node);
  t.weak_ = t.is_number_ = true;
  t.weak_value_ = value;
  return t;
}

Tensor Tensor::as_weak() const {
  Tensor t = *this;
  t.weak_ = true;
  return t;
}

const UOp& Tensor::node() const& {
  if (cell_ && !(seen_ == cell_->node())) {
    node_ = view_of_memory(cell_->node(), view_);
    if (is_detached_) node_ = make_alias(node_, AliasKind::Detached);
    seen_ = cell_->node();
  }
  return node_;
}

Tensor Tensor::moved(UOp node, Op op, const Shape& parameters) const {
  auto view = move_view(view_, op, parameters);
  return view ? viewed(std::move(node), std::move(*view)) : with(std::move(node));
}

Tensor Tensor::detached(UOp node) const {
  Tensor t = viewed(std::move(node), view_);
  t.is_detached_ = true;
  return t;
}

Tensor Tensor::viewed(UOp node, View view) const {
  Tensor t = *this;
  t.weak_ = t.is_number_ = false;
  t.view_ = std::move(view);
  t.node_ = std::move(node);
  t.seen_ = cell_->node();
  return t;
}

namespace {

// A view whose begin variables decide: the memory as an array, by the strides, of which it is a
// part along each axis.  Null if it is none.
UOp part_of_memory(const UOp& flat, const View& view) {
  if (!all_const(view.strides) || !product(shape_of(flat)).is_const()) return {};
  std::vector<size_t> axes;
  for (size_t i = 0; i < view.shape.size(); ++i)
    if (!view.shape[i].is(1)) axes.push_back(i);
  const auto stride = [&](size_t axis) { return view.strides[axis].value(); };
  sort_stable(axes, [&](size_t a, size_t b) { return stride(a) > stride(b); });
  Shape whole, begin, end;
  Ints order(axes.size());
  int64_t outer = product(shape_of(flat)).value();
  Dim rest = view.offset;
  const auto add_axis = [&](int64_t step, const Dim& size) {
    if (step <= 0 || outer % step != 0) return false;
    const Dim at = floor_div(rest, Dim(step));
    whole.emplace_back(outer / step);
    if (upper_bound(at + size) > outer / step) return false;
    begin.push_back(at);
    end.push_back(at + size);
    rest = floor_mod(rest, Dim(step));
    outer = step;
    return true;
  };
  for (size_t k = 0; k < axes.size(); ++k) {
    order[axes[k] - static_cast<size_t>(std::ranges::count_if(
                        std::span(view.shape).first(axes[k]),
                        [](const Dim& d) { return d.is(1); }))] = static_cast<int64_t>(k);
    if (!add_axis(stride(axes[k]), view.shape[axes[k]])) return {};
  }
  if (outer > 1 && !add_axis(1, Dim(1))) return {};
  UOp part = make_shrink(make_reshape(flat, whole), begin, end);
  if (whole.size() > axes.size()) {
    Shape without(end.size() - 1);
    for (size_t k = 0; k < without.size(); ++k) without[k] = view.shape[axes[k]];
    part = make_reshape(part, without);
  }
  return make_reshape(make_permute(part, order), view.shape);
}

// The view with each size at its greatest, of which it is the first elements along each axis.
UOp part_of_greatest(const UOp& flat, const View& view) {
  View greatest{view.shape, view.strides, 0};
  for (Dim& size : greatest.shape) size = upper_bound(size);
  const auto [first, last] = extent(greatest);
  const Dim count = product(shape_of(flat));
  const Dim begin = view.offset + first;
  const Dim end = view.offset + last + 1;
  require(decide_less_equal(0, begin) && decide_less_equal(end, count), Status::Unsupported,
          "a view of shape ", view.shape, " with strides ", view.strides, " from element ",
          view.offset, " on, which at its greatest is not inside of memory that has ", count);
  const UOp part = make_shrink(make_reshape(flat, {count}), {begin}, {end});
  const UOp all =
      flat.graph().make(Op::AsStrided, {part},
                        ViewArg{const_dims(greatest.shape), const_dims(greatest.strides), -first});
  return make_shrink(all, Shape(view.shape.size(), Dim(0)), view.shape);
}

// One of a row's elements by a step of those that to_movement_steps makes of a view.
UOp moved(const UOp& node, const MovementStep& step) {
  const Shape& numbers = step.numbers;
  const auto middle = numbers.begin() + static_cast<ptrdiff_t>(numbers.size() / 2);
  switch (step.movement) {
    case Movement::Reshape:
      return make_reshape(node, numbers);
    case Movement::Permute:
      return make_permute(node, const_dims(numbers));
    case Movement::Expand:
      return make_expand(node, numbers);
    case Movement::Shrink:
      return make_shrink(node, Shape(numbers.begin(), middle), Shape(middle, numbers.end()));
    case Movement::Flip:
      return make_flip(node, const_dims(numbers));
    case Movement::Stride: {
      // Windows of one element each.
      const Shape& shape = shape_of(node);
      const auto axis = static_cast<int64_t>(shape.size()) - 1;
      const Dim& stride = numbers.back();
      const Dim count = floor_div(shape.back() + stride - 1, stride);
      const Unfolding windows{axis, {{count, 1, stride.value(), 1}}};
      Shape without = shape;
      without.back() = count;
      return make_reshape(make_unfold(node, windows), without);
    }
    default:
      throw_error(Status::Internal, "a view is no row moved so");
  }
}

UOp moved_memory(const UOp& flat, const View& view) {
  if (!view.offset.is_const())
    if (UOp part = part_of_memory(flat, view)) return part;
  const std::vector<MovementStep> steps = to_movement_steps(view);
  if (steps.front().movement == Movement::AsStrided) return part_of_greatest(flat, view);
  UOp node = make_reshape(flat, {product(shape_of(flat))});
  for (const MovementStep& step : steps) node = moved(node, step);
  return node;
}

}  // namespace

UOp view_of_memory(const UOp& flat, const View& view) {
  const Dim count = product(shape_of(flat));
  if (is_row_major(view) && product(view.shape) == count) return make_reshape(flat, view.shape);
  if (!all_const(view.shape) || !all_const(view.strides) || !view.offset.is_const())
    return moved_memory(flat, view);
  // What has no element is nowhere in the memory, whatever its offset says.
  const auto [first, last] = extent(view);
  return flat.graph().make(Op::AsStrided, {flat},
                           ViewArg{const_dims(view.shape), const_dims(view.strides),
                                   first > last ? 0 : view.offset.value()});
}

}  // namespace tiny
