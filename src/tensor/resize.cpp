#include "tensor/resize.h"

#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "base/error.h"
#include "engine/host_room.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"

namespace tiny {

namespace {

// How one axis changes.
struct Axis {
  int64_t from = 0;
  int64_t to = 0;
  double scale = 1;
  double begin = 0;  // of the region of interest, as a share of the axis
  double end = 1;
};

// Where output element i lies among the input elements.
double place(const Axis& a, Coordinates coordinates, int64_t i) {
  const auto at = static_cast<double>(i);
  const auto n = static_cast<double>(a.from);
  const double size = n * a.scale;  // of the output, before rounding
  const double half = (at + 0.5) / a.scale - 0.5;
  const double span = (a.end - a.begin) * (n - 1);
  switch (coordinates) {
    case Coordinates::HalfPixel:
      break;
    case Coordinates::HalfPixelSymmetric:
      return half + n / 2 * (1 - static_cast<double>(a.to) / size);
    case Coordinates::PytorchHalfPixel:
      return size == 1 ? -0.5 : half;
    case Coordinates::HalfPixelNearest:
      return half + 0.5;
    case Coordinates::AlignCorners:
      return size == 1 ? 0 : at * (n - 1) / (size - 1);
    case Coordinates::Asymmetric:
      return at / a.scale;
    case Coordinates::CropAndResize:
      return a.begin * (n - 1) + (size == 1 ? span / 2 : at * span / (size - 1));
  }
  return half;
}

int64_t nearest(double x, NearestMode mode) {
  switch (mode) {
    case NearestMode::RoundPreferFloor:
      break;
    case NearestMode::RoundPreferCeil:
      return static_cast<int64_t>(std::floor(x + 0.5));
    case NearestMode::Floor:
      return static_cast<int64_t>(std::floor(x));
    case NearestMode::Ceil:
      return static_cast<int64_t>(std::ceil(x));
  }
  return static_cast<int64_t>(std::ceil(x - 0.5));
}

// The weight of an element at this distance.
double kernel(double distance, const ResizeOptions& options) {
  const double x = std::fabs(distance);
  if (options.mode == Interpolation::Linear) return std::max(0.0, 1 - x);
  const double a = options.cubic_coefficient;
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

// Sizes beyond this are no picture, and products of two of them still fit.
constexpr double kSizeMax = 0x1p31;
// Regions of interest that reach further are none, and their places are whole numbers still.
constexpr double kRegionMax = 0x1p20;

// Input elements and their weights for every output element, `width` for each.
struct Taps {
  int64_t width = 0;
  Ints index;
  std::vector<double> weight;
  Ints outside;  // 1 where the output element lies outside of the input
};

Taps taps_of(Context& context, const Axis& a, const ResizeOptions& options) {
  const bool is_nearest = options.mode == Interpolation::Nearest;
  // Smoothing widens the kernel by as much as the picture shrinks.
  const double zoom = options.antialias ? std::min(a.scale, 1.0) : 1.0;
  const double reach = (options.mode == Interpolation::Linear ? 1 : 2) / zoom;
  Taps t;
  t.width = is_nearest ? 1 : 2 * static_cast<int64_t>(std::ceil(std::min(reach, kSizeMax)));
  HostRoom room(context, a.to, checked_mul(t.width, sizeof(int64_t) + sizeof(double), "taps") + 8);
  for (int64_t i = 0; i < a.to; ++i) {
    room.check();
    const double x = place(a, options.coordinates, i);
    t.outside.push_back(options.coordinates == Coordinates::CropAndResize &&
                        (x < 0 || x > static_cast<double>(a.from - 1)));
    const auto clamped = [&](int64_t at) { return std::clamp<int64_t>(at, 0, a.from - 1); };
    if (is_nearest) {
      t.index.push_back(clamped(nearest(x, options.nearest_mode)));
      continue;
    }
    const int64_t first = static_cast<int64_t>(std::floor(x)) - t.width / 2 + 1;
    double total = 0;
    for (int64_t k = 0; k < t.width; ++k) {
      room.check();
      const int64_t at = first + k;
      const bool counts = !options.exclude_outside || (at >= 0 && at < a.from);
      const double w = counts ? kernel((static_cast<double>(at) - x) * zoom, options) : 0;
      t.index.push_back(clamped(at));
      t.weight.push_back(w);
      total += w;
    }
    if ((options.antialias || options.exclude_outside) && total != 0)
      for (size_t k = t.weight.size() - static_cast<size_t>(t.width); k < t.weight.size(); ++k)
        t.weight[k] /= total;
  }
  return t;
}

Tensor resized_axis(const Tensor& x, int64_t axis, const Axis& a, const ResizeOptions& options) {
  const Ref<Context>& context = x.context_ref();
  const Taps t = taps_of(*context, a, options);
  Tensor out = index_select(x, t.index, axis);
  if (options.mode != Interpolation::Nearest) {
    // [.., to, width, ..] times the weights, summed over the width.
    Ints apart = const_dims(x.shape());
    apart[static_cast<size_t>(axis)] = a.to;
    apart.insert(apart.begin() + axis + 1, t.width);
    Ints beside(apart.size(), 1);
    beside[static_cast<size_t>(axis)] = a.to;
    beside[static_cast<size_t>(axis) + 1] = t.width;
    const Tensor weights = cast(
        from_data(context, kFloat64, beside, t.weight.data(), std::ssize(t.weight) * 8), x.dtype());
    // More axes than a caller's tensor may have.
    const Tensor spread = out.with(make_reshape(out.node(), to_shape(apart)));
    out = sum(spread * weights, {axis + 1}, false);
  }
  if (std::find(t.outside.begin(), t.outside.end(), 1) == t.outside.end()) return out;
  Ints shape(static_cast<size_t>(x.rank()), 1);
  shape[static_cast<size_t>(axis)] = a.to;
  const Tensor outside =
      from_data(context, kInt64, shape, t.outside.data(), std::ssize(t.outside) * 8);
  return where(cast(outside, kBool), number(out, options.extrapolation_value), out);
}

Tensor resized(const Tensor& x, const std::vector<Axis>& axes, const ResizeOptions& options) {
  const bool moves_only =
      options.mode == Interpolation::Nearest && options.extrapolation_value == 0;
  const bool is_wide = x.dtype().is_float() && x.dtype().bits() >= 32;
  Tensor out = moves_only || is_wide ? x : cast(x, kFloat32);
  for (size_t i = 0; i < axes.size(); ++i) {
    const Axis& a = axes[i];
    const bool is_whole = a.scale == 1 && a.begin == 0 && a.end == 1;
    if (a.from == a.to && (is_whole || a.from == 0)) continue;
    require(a.from > 0, Status::Shape, "resize: axis ", i, " of shape ", x.shape(),
            " has no elements to make others of");
    out = resized_axis(out, static_cast<int64_t>(i), a, options);
  }
  return cast(out, x.dtype());
}

int64_t checked_size(double size) {
  require(size >= 0 && size < kSizeMax, Status::InvalidArgument, "resize: an axis of ", size,
          " elements; wanted 0 to 2^31 - 1");
  return static_cast<int64_t>(size);
}

// Every axis of x as it is, but for the regions of the named.
std::vector<Axis> axes_of(const Tensor& x, const Ints& named, size_t given,
                          const ResizeOptions& options) {
  require(given == named.size(), Status::InvalidArgument, "resize: ", given,
          " sizes or scales for ", named.size(), " axes; wanted one for each");
  const std::vector<double>& region = options.region;
  require(region.empty() || region.size() == 2 * named.size(), Status::InvalidArgument,
          "resize: the region has ", region.size(), " numbers; wanted ", 2 * named.size());
  for (double share : region)
    require(std::fabs(share) < kRegionMax, Status::InvalidArgument, "resize: the region has ",
            share, "; wanted a number below 2^20");
  std::vector<Axis> axes;
  for (int64_t n : const_dims(x.shape())) axes.push_back({n, n, 1, 0, 1});
  if (options.coordinates != Coordinates::CropAndResize || region.empty()) return axes;
  for (size_t i = 0; i < named.size(); ++i) {
    axes[static_cast<size_t>(named[i])].begin = region[i];
    axes[static_cast<size_t>(named[i])].end = region[named.size() + i];
  }
  return axes;
}

}  // namespace

Tensor resize(const Tensor& x, const Ints& axes, const Ints& sizes, const ResizeOptions& options) {
  const Ints named = checked_axes(axes, x.rank());
  std::vector<Axis> all = axes_of(x, named, sizes.size(), options);
  for (size_t i = 0; i < named.size(); ++i) {
    Axis& a = all[static_cast<size_t>(named[i])];
    a.to = checked_size(static_cast<double>(sizes[i]));
    a.scale = static_cast<double>(sizes[i]) / static_cast<double>(a.from);
  }
  if (options.aspect_ratio == AspectRatio::Stretch || named.empty())
    return resized(x, all, options);
  double common = all[static_cast<size_t>(named[0])].scale;
  for (int64_t i : named) {
    const double scale = all[static_cast<size_t>(i)].scale;
    common = options.aspect_ratio == AspectRatio::NotLarger ? std::min(common, scale)
                                                            : std::max(common, scale);
  }
  for (int64_t i : named) {
    Axis& a = all[static_cast<size_t>(i)];
    a.scale = common;
    a.to = checked_size(std::floor(common * static_cast<double>(a.from) + 0.5));
  }
  return resized(x, all, options);
}

Tensor resize_by(const Tensor& x, const Ints& axes, const std::vector<double>& scales,
                 const ResizeOptions& options) {
  const Ints named = checked_axes(axes, x.rank());
  std::vector<Axis> all = axes_of(x, named, scales.size(), options);
  for (size_t i = 0; i < named.size(); ++i) {
    Axis& a = all[static_cast<size_t>(named[i])];
    require(scales[i] > 0, Status::InvalidArgument, "resize: a scale is ", scales[i],
            "; wanted one above 0");
    a.scale = scales[i];
    a.to = checked_size(std::floor(static_cast<double>(a.from) * a.scale));
  }
  return resized(x, all, options);
}

Tensor stretch_linear(const Tensor& x, int64_t axis, double scale) {
  const auto along = static_cast<size_t>(checked_axis(axis, x.rank()));
  const int64_t n = x.shape()[along].value();
  require(scale >= 1, Status::InvalidArgument, "resize: a scale is ", scale,
          "; wanted one of 1 or more");
  const int64_t size = checked_size(std::floor(static_cast<double>(n) * scale));
  if (scale == 1) return x;
  Ints low, high;
  std::vector<double> share;
  HostRoom room(x.context(), size, 2 * sizeof(int64_t) + sizeof(double));
  for (int64_t i = 0; i < size; ++i) {
    room.check();
    const double at = std::min(static_cast<double>(i) / scale, static_cast<double>(n - 1));
    low.push_back(static_cast<int64_t>(at));
    high.push_back(std::min(low.back() + 1, n - 1));
    share.push_back(at - std::floor(at));
  }
  Ints shape(static_cast<size_t>(x.rank()), 1);
  shape[along] = size;
  const Tensor w = cast(
      from_data(x.context_ref(), kFloat64, shape, share.data(), std::ssize(share) * 8), x.dtype());
  return index_select(x, low, axis) * (number(x, 1) - w) + index_select(x, high, axis) * w;
}

}  // namespace tiny
