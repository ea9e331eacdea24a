#include "tensor/window.h"

#include <algorithm>

#include "base/checked.h"
#include "base/error.h"
#include "tensor/elementwise.h"
#include "tensor/movement.h"
#include "tensor/promotion.h"
#include "tensor/reduce.h"
#include "tensor/window_options.h"

namespace tiny {

namespace {

// `node` with axis `axis` replaced by `axes`, of the same number of elements.
UOp with_axes(const UOp& node, size_t axis, const Shape& axes) {
  Shape shape = shape_of(node);
  shape.erase(shape.begin() + static_cast<int64_t>(axis));
  shape.insert(shape.begin() + static_cast<int64_t>(axis), axes.begin(), axes.end());
  return make_reshape(node, shape);
}

// The first `count` elements of an axis.
UOp first_of(const UOp& node, size_t axis, const Dim& count) {
  const Shape& shape = shape_of(node);
  Shape end = shape;
  end[axis] = count;
  return make_shrink(node, Shape(shape.size(), Dim(0)), end);
}

UOp repeated(const UOp& node, size_t axis, int64_t times) {
  const Dim size = shape_of(node)[axis];
  const UOp rows = with_axes(node, axis, {1, size});
  Shape shape = shape_of(rows);
  shape[axis] = times;
  // [times, size] becomes one axis.
  Shape joined = shape_of(node);
  joined[axis] = Dim(times) * size;
  return make_reshape(make_expand(rows, shape), joined);
}

// The axis's length that rows need at least, in whole axes: m * size + dilation >= count * stride.
int64_t repeats_in_row(const Dim& size, int64_t stride, int64_t dilation, const Dim& count) {
  const Dim reach = count * Dim(stride) - dilation;
  if (reach.is_const() && size.is_const())
    return std::max<int64_t>(1, ceil_div(reach.value(), size.value()));
  // Windows lie inside the axis, but for the stride behind the last: 1 + stride is always enough.
  int64_t m = 1;
  while (m <= stride && lower_bound(size * Dim(m) - reach) < 0) ++m;
  return m;
}

// Axis `axis` of `size` elements as [kernel, count].
//
// The axis is repeated and cut into rows that are `dilation` longer than a multiple of its size, so
// that row k starts k * dilation further on:  element (k, o) is k * (size * m + dilation) + o *
// stride, modulo the size.
UOp window_axis(const UOp& node, size_t axis, int64_t kernel, int64_t stride, int64_t dilation,
                const Dim& count) {
  const Dim size = shape_of(node)[axis];
  if (stride == kernel && dilation == 1) {
    // Windows side by side.
    const UOp split =
        with_axes(first_of(node, axis, count * Dim(kernel)), axis, {count, Dim(kernel)});
    Ints axes = every_axis(std::ssize(shape_of(split)));
    std::swap(axes[axis], axes[axis + 1]);
    return make_permute(split, axes);
  }
  decide_less_equal(1, size);
  const int64_t m = repeats_in_row(size, stride, dilation, count);
  const Dim row = size * Dim(m) + dilation;
  const int64_t more =
      ceil_div(checked_mul(kernel, dilation, "a window"), std::max<int64_t>(lower_bound(size), 1));
  const int64_t times = checked_add(checked_mul(kernel, m, "a window"), more, "a window");
  UOp rows = first_of(repeated(node, axis, times), axis, Dim(kernel) * row);
  rows = first_of(with_axes(rows, axis, {Dim(kernel), row}), axis + 1, count * Dim(stride));
  if (stride == 1) return rows;
  rows = first_of(with_axes(rows, axis + 1, {count, Dim(stride)}), axis + 2, 1);
  return with_axes(rows, axis + 2, {});
}

}  // namespace

Dim window_count(const Dim& size, int64_t kernel, int64_t stride, int64_t dilation,
                 bool ceil_mode) {
  const int64_t reach = checked_add(checked_mul(dilation, kernel - 1, "a window"), 1, "a window");
  if (!decide_less_equal(reach, size)) return 0;
  const Dim rest = size - reach;
  return floor_div(ceil_mode ? rest + (stride - 1) : rest, stride) + 1;
}

Tensor windows(const Tensor& x, const Ints& kernel, const Ints& strides, const Ints& dilations,
               const Shape& counts) {
  const size_t n = kernel.size();
  const size_t lead = x.shape().size() - n;
  UOp node = x.node();
  // From the last axis on, so that those before keep their places; [kernel, count] for each.
  for (size_t i = n; i-- > 0;)
    node = window_axis(node, lead + i, kernel[i], strides[i], dilations[i], counts[i]);
  Ints order = every_axis(static_cast<int64_t>(lead));
  for (size_t i = 0; i < n; ++i) order.push_back(static_cast<int64_t>(lead + 2 * i + 1));
  for (size_t i = 0; i < n; ++i) order.push_back(static_cast<int64_t>(lead + 2 * i));
  return x.with(make_permute(node, order));
}

FullWindowOptions complete(const WindowOptions& options, size_t spatial, const char* what) {
  const auto filled = [&](const Ints& list, int64_t otherwise, int64_t least, const char* name) {
    if (list.empty()) return Ints(spatial, otherwise);
    require(list.size() == spatial, Status::Shape, what, ": ", name, " ", list_text(list), " for ",
            spatial, " spatial axes");
    for (int64_t v : list)
      require(v >= least, Status::InvalidArgument, what, ": ", name, " ", list_text(list),
              "; each at least ", least);
    return list;
  };
  return {filled(options.strides, 1, 1, "strides"), filled(options.dilations, 1, 1, "dilations"),
          filled(options.before, 0, INT64_MIN, "pads before"),
          filled(options.after, 0, INT64_MIN, "pads after")};
}

Shape spatial_sizes(const Tensor& x, size_t spatial, const char* what) {
  require(x.shape().size() > spatial, Status::Shape, what, " of shape ", x.shape(), " with ",
          spatial, " spatial axes");
  return x.shape().from(x.shape().size() - spatial);
}

Tensor pad_spatial(const Tensor& x, const Ints& before, const Ints& after, double value) {
  Shape front(x.shape().size(), Dim(0));
  Shape back = front;
  for (size_t i = 0; i < before.size(); ++i) {
    front[front.size() - before.size() + i] = before[i];
    back[back.size() - after.size() + i] = after[i];
  }
  return pad(x, front, back, value);
}

}  // namespace tiny
