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

// Whether an axis has as many elements as a run finds, which may be none.
bool may_be_empty(const Dim& size) {
  if (size.is_const()) return false;
  return std::ranges::any_of(topological({&size.expression(), 1}), [](const UOp& u) {
    return u.op() == Op::Variable && u.variable_arg().min == 0;
  });
}

// Elements from the first to the last of a window.
int64_t reach_of(int64_t kernel, int64_t dilation) {
  return checked_add(checked_mul(dilation, kernel - 1, "a window"), 1, "a window");
}

}  // namespace

Dim window_count(const Dim& size, int64_t kernel, int64_t stride, int64_t dilation,
                 bool ceil_mode) {
  const int64_t reach = reach_of(kernel, dilation);
  const Dim rest = size - reach;
  const Dim count = floor_div(ceil_mode ? rest + (stride - 1) : rest, stride) + 1;
  if (may_be_empty(size)) {
    // Padding makes up for what such an axis lacks, or where it is too short there is no window.
    if (lower_bound(count) >= 0) return count;
    if (!ceil_mode) return floor_div(maximum(rest + stride, 0), stride);
    const Dim places = maximum(rest + 1, 0);
    return minimum(floor_div(places + (2 * stride - 2), stride), places);
  }
  // The last window of ceil mode, and it may be the only one, reaches over the end.
  const Dim reached = ceil_mode ? size + (stride - 1) : size;
  return decide_less_equal(reach, reached) ? count : Dim(0);
}

Tensor windows(const Tensor& x, const Ints& kernel, const Ints& strides, const Ints& dilations,
               const Shape& counts) {
  Unfolding unfolding{static_cast<int64_t>(x.shape().size() - kernel.size()), {}};
  for (size_t i = 0; i < kernel.size(); ++i)
    unfolding.along.push_back({counts[i], kernel[i], strides[i], dilations[i]});
  return x.with(make_unfold(x.node(), unfolding));
}

Tensor windows(const Tensor& x, const Window& window) {
  const size_t spatial = window.kernel.size();
  require(x.shape().size() >= spatial, Status::Shape, "windows of ", spatial, " axes over shape ",
          x.shape());
  require(window.layout == Layout::ChannelsFirst, Status::InvalidArgument,
          "windows: the window has a layout; they lie over the last axes");
  const Window w =
      complete(window, window.kernel, x.shape().from(x.shape().size() - spatial), "windows");
  const Tensor padded = pad_spatial(x, w.before, to_shape(w.after), 0);
  Shape counts;
  for (size_t i = 0; i < spatial; ++i) {
    const Dim& size = padded.shape()[padded.shape().size() - spatial + i];
    counts.push_back(window_count(size, w.kernel[i], w.strides[i], w.dilations[i]));
    require(decide_less_equal(1, counts[i]), Status::Shape, "windows: kernel ", list_text(w.kernel),
            " does not fit into ", padded.shape());
  }
  return windows(padded, w.kernel, w.strides, w.dilations, counts);
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

Tensor pad_spatial(const Tensor& x, const Ints& before, const Shape& after, double value) {
  Shape front(x.shape().size(), Dim(0));
  Shape back = front;
  for (size_t i = 0; i < before.size(); ++i) {
    front[front.size() - before.size() + i] = before[i];
    back[back.size() - after.size() + i] = after[i];
  }
  return pad(x, front, back, value);
}

}  // namespace tiny
