#include "tensor/window.h"

#include <algorithm>

#include "base/checked.h"
#include "base/error.h"
#include "tensor/elementwise.h"
#include "tensor/movement.h"
#include "tensor/promotion.h"
#include "tensor/reduce.h"
#include "tensor/window_parts.h"

namespace tiny {

namespace {

// More elements than this has no axis, and sums of a few such numbers fit into 64 bits.
constexpr int64_t kWindowMax = int64_t{1} << 40;

// Elements from the first to the last of a window.
int64_t reach_of(int64_t kernel, int64_t dilation) {
  return checked_add(checked_mul(dilation, kernel - 1, "a window"), 1, "a window");
}

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
  const int64_t reach = reach_of(kernel, dilation);
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

Window Window::with_kernel(Ints sizes) const {
  Window out = *this;
  out.kernel = std::move(sizes);
  return out;
}

Window Window::with_groups(int64_t count) const {
  Window out = *this;
  out.groups = count;
  return out;
}

void check_window(const Window& window, size_t spatial, const char* what) {
  const auto check = [&](const Ints& list, int64_t least, const char* name) {
    require(list.empty() || list.size() == spatial, Status::Shape, what, ": ", name, " ",
            list_text(list), " for ", spatial, " spatial axes");
    for (int64_t v : list)
      require(v >= least && v <= kWindowMax, Status::InvalidArgument, what, ": ", name, " ",
              list_text(list), "; each from ", least, " to ", kWindowMax);
  };
  check(window.kernel, 1, "kernel");
  check(window.strides, 1, "strides");
  check(window.dilations, 1, "dilations");
  check(window.before, -kWindowMax, "padding before");
  check(window.after, -kWindowMax, "padding after");
  check(window.output_padding, 0, "output padding");
  check(window.output_size, 1, "output size");
  require(window.groups >= 1, Status::InvalidArgument, what, ": groups is ", window.groups,
          "; wanted at least 1");
}

namespace {

// Every list full, by its default.
Window filled(const Window& window, const Ints& kernel, size_t spatial, const char* what) {
  check_window(window, spatial, what);
  require(window.kernel.empty() || window.kernel == kernel, Status::Shape, what,
          ": the window's kernel is ", list_text(window.kernel), ", the weight's ",
          list_text(kernel), "; wanted the same, or none in the window");
  Window w = window;
  w.kernel = kernel;
  const auto fill = [&](Ints& list, int64_t otherwise) {
    if (list.empty()) list.assign(spatial, otherwise);
  };
  fill(w.strides, 1);
  fill(w.dilations, 1);
  fill(w.output_padding, 0);
  if (w.padding != Padding::Explicit) w.before = w.after = {};
  fill(w.before, 0);
  fill(w.after, 0);
  return w;
}

bool is_same(Padding padding) {
  return padding == Padding::SameUpper || padding == Padding::SameLower;
}

}  // namespace

Window complete(const Window& window, const Ints& kernel, const Shape& sizes, const char* what) {
  Window w = filled(window, kernel, sizes.size(), what);
  if (is_same(w.padding)) {
    for (size_t i = 0; i < sizes.size(); ++i) {
      const int64_t reach = reach_of(kernel[i], w.dilations[i]);
      // With a stride of 1 the size does not matter.
      const Dim steps = floor_div(sizes[i] + (w.strides[i] - 1), w.strides[i]) - 1;
      const Dim missing = steps * Dim(w.strides[i]) + reach - sizes[i];
      const int64_t total = std::max<int64_t>(0, missing.value());
      w.before[i] = w.padding == Padding::SameUpper ? total / 2 : total - total / 2;
      w.after[i] = total - w.before[i];
    }
  }
  w.padding = Padding::Explicit;
  return w;
}

Window complete_transposed(const Window& window, const Ints& kernel, const Shape& sizes,
                           const char* what) {
  Window w = filled(window, kernel, sizes.size(), what);
  if (is_same(w.padding) || !w.output_size.empty()) {
    for (size_t i = 0; i < sizes.size(); ++i) {
      const Dim stride = w.strides[i];
      const Dim wanted = w.output_size.empty() ? sizes[i] * stride : Dim(w.output_size[i]);
      const Dim full =
          (sizes[i] - 1) * stride + w.output_padding[i] + reach_of(kernel[i], w.dilations[i]);
      const int64_t total = (full - wanted).value();
      const int64_t half = floor_div(total, 2);
      w.before[i] = w.padding == Padding::SameUpper ? half : total - half;
      if (total < 0) w.before[i] = std::max<int64_t>(0, w.before[i]);
      w.after[i] = total - w.before[i];
    }
  }
  w.padding = Padding::Explicit;
  return w;
}

Tensor from_layout(const Tensor& tensor, const Window& window, size_t spatial) {
  if (window.layout == Layout::ChannelsFirst) return tensor;
  Ints axes = every_axis(tensor.rank());
  std::rotate(axes.end() - 1 - static_cast<int64_t>(spatial), axes.end() - 1, axes.end());
  return permute(tensor, axes);
}

Tensor to_layout(const Tensor& tensor, const Window& window, size_t spatial) {
  if (window.layout == Layout::ChannelsFirst) return tensor;
  Ints axes = every_axis(tensor.rank());
  const auto channels = axes.end() - 1 - static_cast<int64_t>(spatial);
  std::rotate(channels, channels + 1, axes.end());
  return permute(tensor, axes);
}

Shape spatial_sizes(const Tensor& x, size_t spatial, const char* what) {
  require(x.shape().size() > spatial, Status::Shape, what, " of shape ", x.shape(), " with ",
          spatial, " spatial axes; wanted more axes than these");
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
