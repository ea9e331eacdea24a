// Elements sampled at computed places: grids, and columns put back into pictures.
#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "base/error.h"
#include "engine/host_room.h"
#include "onnx/import/functions.h"
#include "onnx/import/table.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"

namespace tiny::onnx {

namespace {

// ---- GridSample.

enum class Padding { Zeros, Border, Reflection };

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
Tap placed(const Tensor& at, int64_t n, Padding padding, bool align) {
  const auto last = static_cast<double>(n - 1);
  Tap tap;
  Tensor place = at;
  if (padding == Padding::Zeros) {
    tap.inside = bit_and(less_equal(number(at, 0), at), less_equal(at, number(at, last)));
  } else if (padding == Padding::Reflection) {
    // Mirrored at the centres of the outermost elements, or at their edges.
    const double low = align ? 0 : -0.5;
    const double span = align ? last : static_cast<double>(n);
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
std::vector<Tap> taps_along(const Tensor& grid, int64_t n, const std::string& mode, Padding padding,
                            bool align) {
  const auto size = static_cast<double>(n);
  const Tensor one = number(grid, 1);
  const Tensor at = align ? (grid + one) * number(grid, (size - 1) / 2)
                          : ((grid + one) * number(grid, size) - one) * number(grid, 0.5);
  if (mode == "nearest") {
    Tap tap = placed(round(at), n, padding, align);
    return {tap};
  }
  const Tensor low = floor(at);
  const Tensor t = at - low;
  std::vector<Tap> taps;
  const int64_t first = mode == "cubic" ? -1 : 0;
  const int64_t last = mode == "cubic" ? 2 : 1;
  for (int64_t k = first; k <= last; ++k) {
    Tap tap = placed(low + number(low, static_cast<double>(k)), n, padding, align);
    tap.weight = mode == "cubic" ? cubic_weight(t - number(t, static_cast<double>(k)))
                                 : (k == 0 ? one - t : t);
    taps.push_back(tap);
  }
  return taps;
}

Tensors import_grid_sample(Call& c) {
  const Tensor& x = c.in(0);
  const Tensor grid = c.in(1);
  const int64_t axes = x.rank() - 2;
  c.check(axes >= 1 && grid.rank() == x.rank() && dim_of(grid, -1) == axes &&
              dim_of(grid, 0) == dim_of(x, 0),
          "a grid of shape ", grid.shape(), " for ", x.shape());
  std::string mode = c.text_attr("mode", c.version() < 20 ? "bilinear" : "linear");
  if (mode == "bilinear") mode = "linear";
  if (mode == "bicubic") mode = "cubic";
  c.check(mode == "linear" || mode == "nearest" || mode == "cubic", "the attribute mode is \"",
          mode, "\"");
  const std::string around = c.text_attr("padding_mode", "zeros");
  c.check(around == "zeros" || around == "border" || around == "reflection",
          "the attribute padding_mode is \"", around, "\"");
  const Padding padding = around == "zeros"    ? Padding::Zeros
                          : around == "border" ? Padding::Border
                                               : Padding::Reflection;
  const bool align = c.flag("align_corners", false);
  const Tensor wide = x.dtype().is_float() && x.dtype().bits() >= 32 ? x : cast(x, kFloat32);
  const Ints shape = dims_of(x);
  Ints points = dims_of(grid);
  points.pop_back();
  int64_t count = 1, area = 1;
  for (size_t i = 1; i < points.size(); ++i) count *= points[i];
  for (int64_t i = 0; i < axes; ++i) area *= shape[static_cast<size_t>(i) + 2];
  c.check(area > 0, "an input without elements cannot be sampled");
  const Tensor flat = reshape(wide, to_shape({shape[0], shape[1], area}));
  // Every combination of one tap for each axis; grids name the last axis first.
  std::vector<std::vector<Tap>> taps;
  for (int64_t i = 0; i < axes; ++i) {
    const Tensor along = slice_axis(grid, -1, axes - 1 - i, axes - i);
    taps.push_back(taps_along(cast(reshape(along, to_shape({shape[0], 1, count})), kFloat32),
                              shape[static_cast<size_t>(i) + 2], mode, padding, align));
  }
  std::vector<size_t> chosen(taps.size());
  Tensor out;
  while (true) {
    Tensor place, weight, inside;
    for (size_t i = 0; i < taps.size(); ++i) {
      const Tap& tap = taps[i][chosen[i]];
      const auto n = shape[i + 2];
      place = place ? place * number_int(place, n) + tap.index : tap.index;
      if (tap.weight) weight = weight ? weight * tap.weight : tap.weight;
      if (tap.inside) inside = inside ? bit_and(inside, tap.inside) : tap.inside;
    }
    Tensor value = take_along_axis(flat, expand(place, to_shape({shape[0], shape[1], count})), 2);
    if (inside) value = where(inside, value, number(value, 0));
    if (weight) value = value * cast(weight, value.dtype());
    out = out ? out + value : value;
    size_t i = 0;
    while (i < chosen.size() && ++chosen[i] == taps[i].size()) chosen[i++] = 0;
    if (i == chosen.size()) break;
  }
  Ints result{shape[0], shape[1]};
  result.insert(result.end(), points.begin() + 1, points.end());
  return {cast(reshape(out, to_shape(result)), x.dtype())};
}

// ---- AffineGrid.

Tensors import_affine_grid(Call& c) {
  const Tensor& theta = c.in(0);
  const Ints size = c.ints(1);
  const auto axes = static_cast<int64_t>(size.size()) - 2;
  c.check((axes == 2 || axes == 3) && theta.rank() == 3 && dim_of(theta, 1) == axes &&
              dim_of(theta, 2) == axes + 1 && size[0] == dim_of(theta, 0),
          "theta of shape ", theta.shape(), " for a size ", list_text(size));
  const Ints spatial(size.begin() + 2, size.end());
  const int64_t count = element_count(spatial, "a grid");
  const bool align = c.flag("align_corners", false);
  // Homogeneous coordinates of every point, the last axis first.
  std::vector<double> base;
  HostRoom room(*c.context(), count, (axes + 1) * static_cast<int64_t>(sizeof(double)));
  for (int64_t p = 0; p < count; ++p) {
    room.check();
    int64_t rest = p;
    for (int64_t i = axes - 1; i >= 0; --i) {
      const int64_t n = spatial[static_cast<size_t>(i)];
      const auto at = static_cast<double>(rest % n);
      rest /= n;
      base.push_back(align ? (n == 1 ? -1 : 2 * at / static_cast<double>(n - 1) - 1)
                           : (2 * at + 1) / static_cast<double>(n) - 1);
    }
    base.push_back(1);
  }
  const Tensor points = cast(from_data(c.context(), kFloat64, {1, count, axes + 1}, base.data(),
                                       static_cast<int64_t>(base.size() * sizeof(double))),
                             theta.dtype());
  Ints shape{size[0]};
  shape.insert(shape.end(), spatial.begin(), spatial.end());
  shape.push_back(axes);
  return {reshape(matmul(points, transpose(theta, 1, 2)), to_shape(shape))};
}

// ---- Col2Im.

// One axis: [.., kernel, windows, ..] at `axis` summed into [.., size, ..].
Tensor folded_axis(const Call& c, const Tensor& x, int64_t axis, int64_t size, int64_t stride,
                   int64_t dilation, int64_t before) {
  const int64_t kernel = dim_of(x, axis);
  const int64_t windows = dim_of(x, axis + 1);
  Ints from, valid;
  HostRoom room(*c.context(), checked_mul(size, kernel, "a fold"), 2 * sizeof(int64_t));
  for (int64_t p = 0; p < size; ++p)
    for (int64_t k = 0; k < kernel; ++k) {
      room.check();
      const int64_t start = p + before - k * dilation;
      const bool hit = start >= 0 && start % stride == 0 && start / stride < windows;
      from.push_back(hit ? k * windows + start / stride : 0);
      valid.push_back(hit ? 1 : 0);
    }
  Ints joined = dims_of(x);
  joined.erase(joined.begin() + axis);
  joined[static_cast<size_t>(axis)] = kernel * windows;
  Ints apart = joined;
  apart[static_cast<size_t>(axis)] = size;
  apart.insert(apart.begin() + axis + 1, kernel);
  Ints beside(apart.size(), 1);
  beside[static_cast<size_t>(axis)] = size;
  beside[static_cast<size_t>(axis) + 1] = kernel;
  const Tensor line = take(reshape(x, to_shape(joined)), from, axis);
  const Tensor mask = cast(from_data(c.context(), kInt64, beside, valid.data(),
                                     static_cast<int64_t>(valid.size() * sizeof(int64_t))),
                           kBool);
  const Tensor spread = x.with(make_reshape(line.node(), to_shape(apart)));
  return sum_same(where(mask, spread, number_int(spread, 0)), {axis + 1}, false);
}

Tensors import_col2im(Call& c) {
  const Tensor& x = c.in(0);
  const Ints image = c.ints(1);
  const Ints block = c.ints(2);
  const size_t axes = image.size();
  const Ints strides = c.ints_attr("strides", Ints(axes, 1));
  const Ints dilations = c.ints_attr("dilations", Ints(axes, 1));
  const Ints pads = c.ints_attr("pads", Ints(2 * axes, 0));
  c.check(axes > 0 && block.size() == axes && strides.size() == axes && dilations.size() == axes &&
              pads.size() == 2 * axes && x.rank() == 3,
          "image_shape ", list_text(image), ", block_shape ", list_text(block));
  Ints windows;
  int64_t blocks = 1, places = 1;
  for (size_t i = 0; i < axes; ++i) {
    constexpr int64_t kMost = int64_t{1} << 24;
    for (int64_t v : {image[i], block[i], strides[i], dilations[i]})
      c.check(v > 0 && v < kMost, "a size is ", v);
    c.check(pads[i] >= 0 && pads[i] < kMost && pads[axes + i] >= 0 && pads[axes + i] < kMost,
            "pads ", list_text(pads));
    const int64_t room = image[i] + pads[i] + pads[axes + i] - dilations[i] * (block[i] - 1) - 1;
    c.check(room >= 0, "a block does not fit the image");
    windows.push_back(room / strides[i] + 1);
    blocks = checked_mul(blocks, block[i], "a block");
    places = checked_mul(places, windows[i], "the blocks");
  }
  c.check(dim_of(x, 1) % blocks == 0 && dim_of(x, 2) == places, "columns of shape ", x.shape(),
          " for ", places, " blocks of ", blocks);
  // [N, C, k1, k2, .., l1, l2, ..] to [N, C, k1, l1, k2, l2, ..]
  Ints apart{dim_of(x, 0), dim_of(x, 1) / blocks}, order{0, 1};
  apart.insert(apart.end(), block.begin(), block.end());
  apart.insert(apart.end(), windows.begin(), windows.end());
  for (size_t i = 0; i < axes; ++i) {
    order.push_back(static_cast<int64_t>(2 + i));
    order.push_back(static_cast<int64_t>(2 + axes + i));
  }
  Tensor out = x.with(make_permute(make_reshape(x.node(), to_shape(apart)), order));
  for (size_t i = 0; i < axes; ++i)
    out = folded_axis(c, out, static_cast<int64_t>(i) + 2, image[i], strides[i], dilations[i],
                      pads[i]);
  return {out};
}

constexpr int64_t kNow = kNewestOpset;

// clang-format off
constexpr Row kRows[] = {
    {"GridSample", 16, kNow, import_grid_sample},
    {"AffineGrid", 20, kNow, import_affine_grid, operand(1)},
    {"Col2Im",     18, kNow, import_col2im, operand(1) | operand(2)},
};
// clang-format on

}  // namespace

std::span<const Row> sampling_rows() {
  return kRows;
}

}  // namespace tiny::onnx
