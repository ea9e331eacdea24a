#include "tensor/grid_sample.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/checked.h"
#include "base/error.h"
#include "engine/host_room.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/joining.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"

namespace tiny {

namespace {

// An element beside a sampling point along one axis: where, how much it counts, and whether it is
// inside at all (no tensor: always).
struct Tap {
  Tensor index;
  Tensor weight;
  Tensor inside;
};

Tensor clamped(const Tensor& x, double low, double high) {
  return minimum(maximum(x, number(x, low)), number(x, high));
}

// The place of a whole-numbered coordinate (a float) among n elements.
Tap placed(const Tensor& at, int64_t n, const GridSampleOptions& options) {
  const auto last = static_cast<double>(n - 1);
  Tap tap;
  Tensor place = at;
  if (options.padding == GridPadding::Zeros) {
    tap.inside = bit_and(less_equal(number(at, 0), at), less_equal(at, number(at, last)));
  } else if (options.padding == GridPadding::Reflection) {
    // Mirrored at the centres of the outermost elements, or at their edges.
    const double low = options.align_corners ? 0 : -0.5;
    const double span = options.align_corners ? last : static_cast<double>(n);
    if (span <= 0) {
      place = number(at, 0);
    } else {
      const Tensor turn = floor_mod(at - number(at, low), number(at, 2 * span));
      place = minimum(turn, number(at, 2 * span) - turn) + number(at, low);
    }
  }
  // A coordinate that is no number is as good as any.
  const Tensor safe = where(is_nan(place), number(place, 0), clamped(round(place), 0, last));
  tap.index = cast(safe, kInt64);
  return tap;
}

// Weights of the four elements around, at distances 1 + t, t, 1 - t and 2 - t.
Tensor cubic_weight(const Tensor& distance) {
  constexpr double a = -0.75;
  const Tensor x = abs(distance);
  const auto c = [&](double v) { return number(x, v); };
  const Tensor near = ((c(a + 2) * x - c(a + 3)) * x) * x + c(1);
  const Tensor far = ((c(a) * x - c(5 * a)) * x + c(8 * a)) * x - c(4 * a);
  return where(less_equal(x, c(1)), near, far);
}

// The taps along one axis of n elements for coordinates in -1 .. 1.
std::vector<Tap> taps_along(const Tensor& grid, int64_t n, const GridSampleOptions& options) {
  const auto size = static_cast<double>(n);
  const Tensor one = number(grid, 1);
  const Tensor at = options.align_corners
                        ? (grid + one) * number(grid, (size - 1) / 2)
                        : ((grid + one) * number(grid, size) - one) * number(grid, 0.5);
  if (options.mode == Interpolation::Nearest) return {placed(round(at), n, options)};
  const bool is_cubic = options.mode == Interpolation::Cubic;
  const Tensor low = floor(at);
  const Tensor t = at - low;
  std::vector<Tap> taps;
  const int64_t first = is_cubic ? -1 : 0;
  const int64_t last = is_cubic ? 2 : 1;
  for (int64_t k = first; k <= last; ++k) {
    const auto offset = static_cast<double>(k);
    Tap tap = placed(low + number(low, offset), n, options);
    tap.weight = is_cubic ? cubic_weight(t - number(t, offset)) : (k == 0 ? one - t : t);
    taps.push_back(tap);
  }
  return taps;
}

// Over every combination of one tap for each axis, flat [batch, channels, area] at the tap times
// its weight: [batch, channels, points].
Tensor sampled(const Tensor& flat, const Ints& spatial, const std::vector<std::vector<Tap>>& taps) {
  std::vector<size_t> chosen(taps.size());
  Tensor out;
  while (true) {
    Tensor place, weight, inside;
    for (size_t i = 0; i < taps.size(); ++i) {
      const Tap& tap = taps[i][chosen[i]];
      place = place ? place * number_int(place, spatial[i]) + tap.index : tap.index;
      if (tap.weight) weight = weight ? weight * tap.weight : tap.weight;
      if (tap.inside) inside = inside ? bit_and(inside, tap.inside) : tap.inside;
    }
    const Shape shape{flat.shape()[0], flat.shape()[1], place.shape()[2]};
    Tensor value = take_along_axis(flat, expand(place, shape), 2);
    if (inside) value = where(inside, value, number(value, 0));
    if (weight) value = value * cast(weight, value.dtype());
    out = out ? out + value : value;
    size_t i = 0;
    while (i < chosen.size() && ++chosen[i] == taps[i].size()) chosen[i++] = 0;
    if (i == chosen.size()) return out;
  }
}

}  // namespace

Tensor grid_sample(const Tensor& x, const Tensor& grid, const GridSampleOptions& options) {
  const int64_t axes = x.rank() - 2;
  require(axes >= 1 && grid.rank() == x.rank(), Status::Shape, "grid_sample: a grid of shape ",
          grid.shape(), " for ", x.shape(), "; wanted as many axes, and at least 3");
  const Shape shape = x.shape();
  const Dim batch = shape[0];
  Shape points = grid.shape();
  require(points.back().is(axes) && decide_equal(points[0], batch), Status::Shape,
          "grid_sample: a grid of shape ", grid.shape(), " for ", x.shape(), "; wanted ", batch,
          " first and ", axes, " last");
  points.erase(points.end() - 1);
  const Ints spatial = const_dims({shape.begin() + 2, shape.end()});
  const int64_t area = product(to_shape(spatial)).value();
  const Dim count = product({points.begin() + 1, points.end()});
  require(area > 0, Status::Shape, "grid_sample: a picture of shape ", x.shape(),
          " has no elements to sample");
  const Tensor wide = x.dtype().is_float() && x.dtype().bits() >= 32 ? x : cast(x, kFloat32);
  // Places are as precise as the elements, or as their numbers are.
  const bool is_double = x.dtype() == kFloat64 || grid.dtype() == kFloat64;
  const DType places = is_double ? kFloat64 : kFloat32;
  std::vector<std::vector<Tap>> taps;
  for (int64_t i = 0; i < axes; ++i) {
    const Tensor along = slice_axis(grid, -1, axes - 1 - i, axes - i);
    taps.push_back(taps_along(cast(reshape(along, {batch, Dim(1), count}), places),
                              spatial[static_cast<size_t>(i)], options));
  }
  const Tensor out = sampled(reshape(wide, {batch, shape[1], Dim(area)}), spatial, taps);
  points.insert(points.begin() + 1, shape[1]);
  return cast(reshape(out, points), x.dtype());
}

namespace {

// Homogeneous coordinates [1, count, axes + 1] of every point, the last axis first.
Tensor affine_points(const Ref<Context>& context, const Ints& spatial, bool align_corners) {
  const auto axes = static_cast<int64_t>(spatial.size());
  int64_t count = 1;
  for (int64_t n : spatial) {
    require(n >= 0, Status::InvalidArgument, "affine_grid: a size is ", n);
    count = checked_mul(count, n, "a grid");
  }
  std::vector<double> base;
  HostRoom room(*context, count, (axes + 1) * static_cast<int64_t>(sizeof(double)));
  for (int64_t p = 0; p < count; ++p) {
    room.check();
    int64_t rest = p;
    for (int64_t i = axes - 1; i >= 0; --i) {
      const int64_t n = spatial[static_cast<size_t>(i)];
      const auto at = static_cast<double>(rest % n);
      rest /= n;
      base.push_back(align_corners ? (n == 1 ? -1 : 2 * at / static_cast<double>(n - 1) - 1)
                                   : (2 * at + 1) / static_cast<double>(n) - 1);
    }
    base.push_back(1);
  }
  return from_data(context, kFloat64, {1, count, axes + 1}, base.data(), std::ssize(base) * 8);
}

// The same of sizes that a run finds.
Tensor affine_points_found(const Ref<Context>& context, const Shape& spatial, bool align_corners) {
  const auto axes = static_cast<int64_t>(spatial.size());
  std::vector<Tensor> coordinates;
  for (int64_t i = axes - 1; i >= 0; --i) {
    const Dim& n = spatial[static_cast<size_t>(i)];
    const Tensor at = cast(positions(context, kInt64, n, i, axes), kFloat64);
    const Tensor size = cast(size_tensor(context, n), kFloat64);
    const Tensor one = number(at, 1), two = number(at, 2);
    const Tensor last = maximum(size - one, one);  // an axis of one element is at its begin
    coordinates.push_back(
        expand(align_corners ? two * at / last - one : (two * at + one) / size - one, spatial));
  }
  coordinates.push_back(expand(full(context, kFloat64, {}, 1), spatial));
  return reshape(stack(coordinates, axes), {Dim(1), product(spatial), Dim(axes + 1)});
}

}  // namespace

Tensor affine_grid(const Tensor& theta, const Shape& spatial, bool align_corners) {
  const auto axes = static_cast<int64_t>(spatial.size());
  require((axes == 2 || axes == 3) && theta.rank() == 3 && theta.shape()[1].value() == axes &&
              theta.shape()[2].value() == axes + 1,
          Status::Shape, "affine_grid: theta of shape ", theta.shape(), " for sizes ", spatial,
          "; wanted 2 or 3 sizes, and as many rows, one column more");
  const bool has_numbers = std::ranges::all_of(spatial, [](const Dim& n) { return n.is_const(); });
  const Ref<Context>& context = theta.context_ref();
  const Tensor points = has_numbers ? affine_points(context, const_dims(spatial), align_corners)
                                    : affine_points_found(context, spatial, align_corners);
  Shape shape = spatial;
  shape.insert(shape.begin(), theta.shape()[0]);
  shape.emplace_back(axes);
  // Few products, and no reduction: what samples at these places computes them in lanes.
  const DType wide = theta.dtype().bits() < 32 ? kFloat32 : theta.dtype();
  Tensor out;
  for (int64_t k = axes; k >= 0; --k) {
    const Tensor row = transpose(slice_axis(cast(theta, wide), 2, k, k + 1), 1, 2);
    const Tensor moved = k < axes ? cast(slice_axis(points, 2, k, k + 1), wide) * row : row;
    out = out ? moved + out : moved;
  }
  return cast(reshape(expand(out, {theta.shape()[0], product(spatial), Dim(axes)}), shape),
              theta.dtype());
}

}  // namespace tiny
