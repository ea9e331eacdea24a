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

// How one axis changes.  Where sizes are not numbers `scale` is 0 if it is what they say.
struct Axis {
  Dim from = 0;
  Dim to = 0;
  double scale = 1;
  double begin = 0;  // of the region of interest, as a share of the axis
  double end = 1;
  Tensor found_begin = {}, found_end = {};  // the same where a run finds them: float64 []
  bool has_sizes() const { return from.is_const() && to.is_const(); }  // that are numbers
  bool has_numbers() const { return has_sizes() && !found_begin; }
};

// What is computed of numbers is computed of tensors where a run finds the sizes.
double lower(double x) {
  return std::floor(x);
}
Tensor lower(const Tensor& x) {
  return floor(x);
}
double magnitude(double x) {
  return std::fabs(x);
}
Tensor magnitude(const Tensor& x) {
  return abs(x);
}
bool is_below(double x, double limit) {
  return x < limit;
}
Tensor is_below(const Tensor& x, const Tensor& limit) {
  return less(x, limit);
}
bool is_same(double a, double b) {
  return a == b;
}
Tensor is_same(const Tensor& a, const Tensor& b) {
  return equal(a, b);
}
template <class Real>
Real chosen(bool condition, Real yes, Real no) {
  return condition ? yes : no;
}
Tensor chosen(const Tensor& condition, const Tensor& yes, const Tensor& no) {
  return where(condition, yes, no);
}
double like(double, double value) {
  return value;
}
float like(float, double value) {
  return static_cast<float>(value);
}
Tensor like(const Tensor& tensor, double value) {
  return number(tensor, value);
}

// The numbers of an axis.
template <class Real>
struct Extent {
  Real from, to, scale, begin, end;
};

// Where output element `at` lies among the input elements.
template <class Real>
Real place(const Extent<Real>& e, Coordinates coordinates, const Real& at) {
  const auto value = [&](double number) { return like(at, number); };
  const Real last = e.from - value(1);
  const Real size = e.from * e.scale;  // of the output, before rounding
  const Real half = (at + value(0.5)) / e.scale - value(0.5);
  const Real span = (e.end - e.begin) * last;
  const auto is_one = is_same(size, value(1));
  switch (coordinates) {
    case Coordinates::HalfPixel:
      break;
    case Coordinates::HalfPixelSymmetric:
      return half + e.from / value(2) * (value(1) - e.to / size);
    case Coordinates::PytorchHalfPixel:
      return chosen(is_one, value(-0.5), half);
    case Coordinates::HalfPixelNearest:
      return half + value(0.5);
    case Coordinates::AlignCorners:
      return chosen(is_one, value(0), at * last / (size - value(1)));
    case Coordinates::Asymmetric:
      return at / e.scale;
    case Coordinates::CropAndResize:
      return e.begin * last + chosen(is_one, span / value(2), at * span / (size - value(1)));
  }
  return half;
}

// Whether places are to be computed in float32, as whoever gives scales of that type does: of
// halves between elements, which a nearest one is chosen of, 6.5 / 1.3 is one there.
bool is_single(const Axis& a, const ResizeOptions& options) {
  if (options.mode != Interpolation::Nearest) return false;
  if (!(a.scale > 0)) return static_cast<bool>(options.found_scale);
  return static_cast<double>(static_cast<float>(a.scale)) == a.scale;
}

// Where output element `i` lies, of sizes that are numbers.
double place(const Axis& a, const ResizeOptions& options, int64_t i) {
  const auto in = [&]<class Real>(Real at) {
    const Extent<Real> extent{static_cast<Real>(a.from.value()), static_cast<Real>(a.to.value()),
                              static_cast<Real>(a.scale), static_cast<Real>(a.begin),
                              static_cast<Real>(a.end)};
    return static_cast<double>(place(extent, options.coordinates, at));
  };
  return is_single(a, options) ? in(static_cast<float>(i)) : in(static_cast<double>(i));
}

// Whole.
template <class Real>
Real nearest(const Real& x, NearestMode mode) {
  switch (mode) {
    case NearestMode::RoundPreferFloor:
      break;
    case NearestMode::RoundPreferCeil:
      return lower(x + like(x, 0.5));
    case NearestMode::Floor:
      return lower(x);
    case NearestMode::Ceil:
      return like(x, 0) - lower(like(x, 0) - x);
  }
  return like(x, 0) - lower(like(x, 0.5) - x);
}

// The weight of an element at this distance.
template <class Real>
Real kernel(const Real& distance, const ResizeOptions& options) {
  const Real x = magnitude(distance);
  const auto value = [&](double number) { return like(x, number); };
  if (options.mode == Interpolation::Linear)
    return chosen(is_below(x, value(1)), value(1) - x, value(0));
  const Real a = value(options.cubic_coefficient);
  const Real inner = ((a + value(2)) * x - (a + value(3))) * x * x + value(1);
  const Real outer = ((a * x - value(5) * a) * x + value(8) * a) * x - value(4) * a;
  return chosen(is_below(x, value(1)), inner, chosen(is_below(x, value(2)), outer, value(0)));
}

// By how much distances count less: smoothing widens the kernel by as much as the picture shrinks.
double zoom_of(const Axis& a, const ResizeOptions& options) {
  return options.antialias ? std::min(a.scale, 1.0) : 1.0;
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

// How many elements weigh something in one of the output.
int64_t width_of(double zoom, const ResizeOptions& options) {
  const double reach = (options.mode == Interpolation::Linear ? 1 : 2) / zoom;
  return 2 * static_cast<int64_t>(std::ceil(std::min(reach, kSizeMax)));
}

Taps taps_of(Context& context, const Axis& a, const ResizeOptions& options) {
  const bool is_nearest = options.mode == Interpolation::Nearest;
  const double zoom = zoom_of(a, options);
  const int64_t from = a.from.value(), to = a.to.value();
  Taps t;
  t.width = is_nearest ? 1 : width_of(zoom, options);
  HostRoom room(context, to, checked_mul(t.width, sizeof(int64_t) + sizeof(double), "taps") + 8);
  for (int64_t i = 0; i < to; ++i) {
    room.check();
    const double x = place(a, options, i);
    t.outside.push_back(options.coordinates == Coordinates::CropAndResize &&
                        (x < 0 || x > static_cast<double>(from - 1)));
    const auto clamped = [&](int64_t at) { return std::clamp<int64_t>(at, 0, from - 1); };
    if (is_nearest) {
      t.index.push_back(clamped(static_cast<int64_t>(nearest(x, options.nearest_mode))));
      continue;
    }
    const int64_t first = static_cast<int64_t>(std::floor(x)) - t.width / 2 + 1;
    double total = 0;
    for (int64_t k = 0; k < t.width; ++k) {
      room.check();
      const int64_t at = first + k;
      const bool counts = !options.exclude_outside || (at >= 0 && at < from);
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

// The same where a run finds the sizes or the region: places and weights are computed with the
// elements.
Tensor resized_found(const Tensor& x, int64_t axis, const Axis& a, const ResizeOptions& options) {
  const Ref<Context>& context = x.context_ref();
  if (options.antialias && !(a.scale > 0)) {
    // How many elements each is made of must be known.
    std::vector<UOp> sizes;
    for (const Dim* size : {&a.from, &a.to})
      if (!size->is_const()) sizes.push_back(size->expression());
    throw_free(sizes, "resize: smoothed to a size that the run finds");
  }
  const DType real = is_single(a, options) ? kFloat32 : kFloat64;
  const auto size = [&](const Dim& n) { return cast(size_tensor(context, n), real); };
  const Tensor from = size(a.from), to = size(a.to), none = number(from, 0);
  const Tensor last = from - number(from, 1);
  const Tensor asked = options.found_scale ? cast(options.found_scale, real) : to / from;
  const auto end_of = [&](const Tensor& found, double known) {
    return found ? cast(found, real) : number(from, known);
  };
  const Extent<Tensor> extent{from, to, a.scale > 0 ? number(from, a.scale) : asked,
                              end_of(a.found_begin, a.begin), end_of(a.found_end, a.end)};
  const Tensor at = cast(positions(context, kInt64, a.to, 0, 2), real);
  const Tensor middle = place(extent, options.coordinates, at);
  const auto index = [&](const Tensor& whole) {
    return cast(minimum(maximum(whole, none), last), kInt64);
  };
  Tensor out;
  if (options.mode == Interpolation::Nearest) {
    out = gather(x, flatten(index(nearest(middle, options.nearest_mode))), axis);
  } else {
    const double zoom = zoom_of(a, options);
    const int64_t width = width_of(zoom, options);
    const Tensor tap = cast(positions(context, kInt64, width, 1, 2), real);
    const int64_t before = width / 2 - 1;
    const Tensor whole = floor(middle) + (tap - number(from, static_cast<double>(before)));
    Tensor weight = kernel((whole - middle) * number(from, zoom), options);
    if (options.exclude_outside)
      weight = where(bit_or(less(whole, none), less(last, whole)), none, weight);
    if (options.antialias || options.exclude_outside) {
      const Tensor total = sum(weight, {1}, true);
      weight = where(equal(total, none), weight, weight / total);
    }
    Shape beside(static_cast<size_t>(x.rank()) + 1, Dim(1));
    beside[static_cast<size_t>(axis)] = a.to;
    beside[static_cast<size_t>(axis) + 1] = width;
    out = sum(gather(x, index(whole), axis) * reshape(cast(weight, x.dtype()), beside), {axis + 1},
              false);
  }
  if (options.coordinates != Coordinates::CropAndResize) return out;
  Shape beside(static_cast<size_t>(x.rank()), Dim(1));
  beside[static_cast<size_t>(axis)] = a.to;
  const Tensor outside = reshape(bit_or(less(middle, none), less(last, middle)), beside);
  return where(outside, number(out, options.extrapolation_value), out);
}

Tensor resized_axis(const Tensor& x, int64_t axis, const Axis& a, const ResizeOptions& options) {
  if (!a.has_numbers()) return resized_found(x, axis, a, options);
  const Ref<Context>& context = x.context_ref();
  const Taps t = taps_of(*context, a, options);
  Tensor out = index_select(x, t.index, axis);
  if (options.mode != Interpolation::Nearest) {
    // [.., to, width, ..] times the weights, summed over the width.
    Shape apart = x.shape();
    apart[static_cast<size_t>(axis)] = a.to;
    apart.insert(apart.begin() + axis + 1, t.width);
    Ints beside(apart.size(), 1);
    beside[static_cast<size_t>(axis)] = a.to.value();
    beside[static_cast<size_t>(axis) + 1] = t.width;
    const Tensor weights = cast(
        from_data(context, kFloat64, beside, t.weight.data(), std::ssize(t.weight) * 8), x.dtype());
    // More axes than a caller's tensor may have.
    const Tensor spread = out.with(make_reshape(out.node(), apart));
    out = sum(spread * weights, {axis + 1}, false);
  }
  if (std::find(t.outside.begin(), t.outside.end(), 1) == t.outside.end()) return out;
  Ints shape(static_cast<size_t>(x.rank()), 1);
  shape[static_cast<size_t>(axis)] = a.to.value();
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
    const bool is_whole = a.scale == 1 && a.begin == 0 && a.end == 1 && !a.found_begin;
    if (a.from == a.to && (is_whole || a.from.is(0))) continue;
    require(!a.from.is(0), Status::Shape, "resize: axis ", i, " of shape ", x.shape(),
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
  for (const Dim& n : x.shape()) axes.push_back({n, n, 1, 0, 1});
  if (options.coordinates != Coordinates::CropAndResize) return axes;
  const Tensor& found = options.found_region;
  const auto count = static_cast<int64_t>(named.size());
  require(!found || (found.rank() == 1 && found.shape()[0].is(2 * count)), Status::InvalidArgument,
          "resize: a region of shape ", found ? found.shape() : Shape(), "; wanted [", 2 * count,
          "]");
  const auto found_at = [&](int64_t i) {
    return cast(reshape(shrink(found, {i}, {i + 1}), Shape()), kFloat64);
  };
  for (int64_t i = 0; i < count; ++i) {
    Axis& a = axes[static_cast<size_t>(named[static_cast<size_t>(i)])];
    if (found) {
      a.found_begin = found_at(i);
      a.found_end = found_at(count + i);
    } else if (!region.empty()) {
      a.begin = region[static_cast<size_t>(i)];
      a.end = region[static_cast<size_t>(count + i)];
    }
  }
  return axes;
}

}  // namespace

Tensor found_aspect_scale(const Tensor& x, const Ints& axes, const Shape& sizes, AspectRatio kind) {
  const Ints named = checked_axes(axes, x.rank());
  require(named.size() == sizes.size() && !named.empty(), Status::InvalidArgument,
          "resize: ", sizes.size(), " sizes for ", named.size(), " axes; wanted one for each");
  const auto real = [&](const Dim& n) {
    return cast(reshape(size_tensor(x.context_ref(), n), {Dim(1)}), kFloat64);
  };
  std::vector<Tensor> scales;
  for (size_t i = 0; i < named.size(); ++i)
    scales.push_back(real(sizes[i]) / real(x.shape()[static_cast<size_t>(named[i])]));
  Tensor common = scales[0];
  for (const Tensor& scale : scales)
    common = kind == AspectRatio::NotLarger ? minimum(common, scale) : maximum(common, scale);
  return common;
}

Tensor resize(const Tensor& x, const Ints& axes, const Shape& sizes, const ResizeOptions& options) {
  const Ints named = checked_axes(axes, x.rank());
  std::vector<Axis> all = axes_of(x, named, sizes.size(), options);
  bool has_sizes = true;
  for (size_t i = 0; i < named.size(); ++i) {
    Axis& a = all[static_cast<size_t>(named[i])];
    a.to =
        sizes[i].is_const() ? Dim(checked_size(static_cast<double>(sizes[i].value()))) : sizes[i];
    has_sizes &= a.has_sizes();
    a.scale = a.from == a.to ? 1
              : a.has_sizes()
                  ? static_cast<double>(a.to.value()) / static_cast<double>(a.from.value())
                  : 0;
  }
  if (options.aspect_ratio == AspectRatio::Stretch || named.empty())
    return resized(x, all, options);
  require(has_sizes, Status::Unsupported,
          "resize: a size that the run finds, of a picture that keeps its proportions");
  double common = all[static_cast<size_t>(named[0])].scale;
  for (int64_t i : named) {
    const double scale = all[static_cast<size_t>(i)].scale;
    common = options.aspect_ratio == AspectRatio::NotLarger ? std::min(common, scale)
                                                            : std::max(common, scale);
  }
  for (int64_t i : named) {
    Axis& a = all[static_cast<size_t>(i)];
    a.scale = common;
    a.to = checked_size(std::floor(common * static_cast<double>(a.from.value()) + 0.5));
  }
  return resized(x, all, options);
}

namespace {

constexpr int kScaleBits = 24;   // of a float's fraction
constexpr int kScaleShift = 38;  // a size of 2^24 times a scale of so many bits is an int64
constexpr int64_t kScaleDivisorMax = 64;  // of scales such as 1.3, which floats only are near

// floor(size * scale), where the scale and the product are floats: 20 * 1.3 is 26.
Dim scaled_size(const Dim& size, double scale) {
  if (size.is_const()) {
    const double exact = static_cast<double>(size.value()) * scale;
    const bool is_fraction = exact < std::ldexp(1.0, kScaleBits);
    return checked_size(std::floor(is_fraction ? static_cast<float>(exact) : exact));
  }
  const double most = std::min(scale, kSizeMax);
  for (int64_t q = 1; q <= kScaleDivisorMax; ++q) {
    const double p = std::round(most * static_cast<double>(q));
    if (static_cast<float>(p / static_cast<double>(q)) == static_cast<float>(most))
      return floor_div(size * Dim(static_cast<int64_t>(p)), Dim(q));
  }
  int exponent = 0;
  std::frexp(most, &exponent);
  const int shift = std::clamp(kScaleBits - exponent, 0, kScaleShift);
  const auto parts = static_cast<int64_t>(std::ldexp(most, shift));
  return floor_div(size * Dim(parts), Dim(int64_t{1} << shift));
}

}  // namespace

Tensor resize_by(const Tensor& x, const Ints& axes, const std::vector<double>& scales,
                 const ResizeOptions& options) {
  const Ints named = checked_axes(axes, x.rank());
  std::vector<Axis> all = axes_of(x, named, scales.size(), options);
  for (size_t i = 0; i < named.size(); ++i) {
    Axis& a = all[static_cast<size_t>(named[i])];
    require(scales[i] > 0, Status::InvalidArgument, "resize: a scale is ", scales[i],
            "; wanted one above 0");
    a.scale = scales[i];
    a.to = scaled_size(a.from, a.scale);
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
