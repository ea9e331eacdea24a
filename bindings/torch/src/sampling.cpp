// Rows of what samples pictures: other sizes, borders that repeat what is inside, places that a
// grid says, columns of windows.  All are linear in the picture, so that a backward row is the
// engine's gradient of the forward one at no picture in particular.
#include <ATen/native/GridSamplerUtils.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "call.h"
#include "windows.h"

namespace tiny_torch {

namespace {

using V = Value;

std::string text_of(const Sizes& numbers) {
  std::string text = "[";
  for (const int64_t number : numbers)
    text += (text.size() > 1 ? "," : "") + std::to_string(number);
  return text + "]";
}
// Of what is linear in its argument, whose sizes are given.
template <class Linear>
V transposed(const V& grad, const Sizes& sizes, const Linear& linear) {
  if (grad.numel() == 0) return full(grad.dtype(), sizes, 0);
  const V x = detach(full(grad.dtype(), sizes, 0));
  return gradients(linear(x), grad, {&x, 1})[0];
}

// ---- Other sizes --------------------------------------------------------------------------------

enum class Resize { Nearest, NearestExact, Linear, Cubic, LinearSmooth, CubicSmooth };

constexpr const char* attributes_of(Resize kind, bool align_corners) {
  switch (kind) {
    case Resize::Nearest:
      return R"({"mode":"nearest","coordinate_transformation_mode":"asymmetric","nearest_mode":"floor"})";
    case Resize::NearestExact:
      return R"({"mode":"nearest","coordinate_transformation_mode":"tf_half_pixel_for_nn","nearest_mode":"floor"})";
    case Resize::Linear:
      return align_corners ? R"({"mode":"linear","coordinate_transformation_mode":"align_corners"})"
                           : R"({"mode":"linear"})";
    case Resize::Cubic:
      return align_corners ? R"({"mode":"cubic","coordinate_transformation_mode":"align_corners"})"
                           : R"({"mode":"cubic"})";
    case Resize::LinearSmooth:
    case Resize::CubicSmooth:
      break;
  }
  return nullptr;
}

// The weight of an element at this distance.
double smooth_weight(Resize kind, double distance) {
  const double x = std::fabs(distance);
  if (kind == Resize::LinearSmooth) return std::max(0.0, 1 - x);
  constexpr double kSlope = -0.5;  // of Keys' kernel
  if (x < 1) return ((kSlope + 2) * x - (kSlope + 3)) * x * x + 1;
  return x < 2 ? ((x - 5) * x + 8) * x * kSlope - 4 * kSlope : 0;
}
// An axis whose elements are `step` elements apart among x's, weighed by a kernel as wide as that:
// a product with a matrix of weights.
V smoothed(Resize kind, const V& x, int64_t axis, int64_t count, double step) {
  const int64_t size = x.size(axis);
  const double stretch = std::max(step, 1.0);
  const double reach = (kind == Resize::LinearSmooth ? 1 : 2) * stretch;
  std::vector<float> weights(static_cast<size_t>(size * count), 0.f);
  for (int64_t i = 0; i < count; ++i) {
    const double middle = step * (static_cast<double>(i) + 0.5);
    const int64_t begin =
        std::max<int64_t>(static_cast<int64_t>(std::floor(middle - reach + 0.5)), 0);
    const int64_t end = std::min(static_cast<int64_t>(std::floor(middle + reach + 0.5)), size);
    const auto weight = [&](int64_t k) {
      return smooth_weight(kind, (static_cast<double>(k) - middle + 0.5) / stretch);
    };
    double total = 0;
    for (int64_t k = begin; k < end; ++k) total += weight(k);
    for (int64_t k = begin; k < end && total != 0; ++k)
      weights[static_cast<size_t>(k * count + i)] = static_cast<float>(weight(k) / total);
  }
  const int64_t sizes[] = {size, count};
  const V matrix = from_data(TINY_FLOAT32, sizes, weights.data(), weights.size() * sizeof(float));
  return transpose(matmul(transpose(x, axis, -1), cast(matrix, x.dtype())), axis, -1);
}

// output_size at 1; align_corners, where there is such, and scales from `at` on.
template <Resize kind>
V resized(const Call& c, const V& x, size_t at) {
  const Sizes sizes = c.ints(1);
  constexpr bool kAligns = kind != Resize::Nearest && kind != Resize::NearestExact;
  const bool align_corners = kAligns && c.flag(at);
  const size_t first = at + kAligns;
  Sizes whole = x.shape();
  const size_t fixed = whole.size() - sizes.size();
  std::copy(sizes.begin(), sizes.end(), whole.begin() + static_cast<std::ptrdiff_t>(fixed));
  if (attributes_of(kind, align_corners) == nullptr) {
    V y = x;
    for (size_t i = 0; i < sizes.size(); ++i) {
      const auto axis = static_cast<int64_t>(fixed + i);
      const auto from = static_cast<double>(x.size(axis));
      const auto to = static_cast<double>(sizes[i]);
      const bool is_named = c.has(first + i) && c.real(first + i) > 0;
      const double step = align_corners ? (to > 1 ? (from - 1) / (to - 1) : 0)
                          : is_named    ? 1 / c.real(first + i)
                                        : from / to;
      y = smoothed(kind, y, axis, sizes[i], step);
    }
    return y;
  }
  // A scale that the program named is another than that of the sizes, which are rounded.
  std::vector<float> scales(whole.size(), 1.0f);
  bool is_by_scales = !align_corners;
  for (size_t i = 0; i < sizes.size() && is_by_scales; ++i) {
    is_by_scales = c.has(first + i) && c.real(first + i) > 0;
    if (!is_by_scales) break;
    scales[fixed + i] = static_cast<float>(c.real(first + i));
    const auto size = static_cast<double>(x.size(static_cast<int64_t>(fixed + i)));
    is_by_scales = std::floor(size * scales[fixed + i]) == static_cast<double>(sizes[i]);
  }
  const char* const attributes = attributes_of(kind, align_corners);
  const auto count = static_cast<int64_t>(whole.size());
  if (!is_by_scales) return onnx("Resize", {x, V(), V(), list_of(whole)}, attributes);
  const V by = from_data(TINY_FLOAT32, {&count, 1}, scales.data(), scales.size() * sizeof(float));
  return onnx("Resize", {x, V(), by}, attributes);
}
template <Resize kind>
void resize(Call& c) {
  const V given = c.value(0);
  const at::IntArrayRef sizes = c.target(0).sizes();
  if (c.target(0).numel() == 0)
    return c.give(0, full(given.dtype(), {sizes.data(), sizes.size()}, 0));
  if constexpr (kind == Resize::Nearest || kind == Resize::NearestExact)
    return c.give(0, resized<kind>(c, given, 2));
  if (given.is_float()) return c.give(0, resized<kind>(c, cast(given, wide(given.dtype())), 2));
  // Pictures of bytes: the nearest byte of what is between, or beyond, them.
  const V y = unary(TINY_ROUND, resized<kind>(c, cast(given, TINY_FLOAT32), 2));
  c.give(0, binary(TINY_MIN, binary(TINY_MAX, y, constant(TINY_FLOAT32, 0)),
                   constant(TINY_FLOAT32, std::numeric_limits<uint8_t>::max())));
}
template <Resize kind>
void resize_backward(Call& c) {  // grad, output_size, input_size, ..
  const V grad = cast(c.value(0), wide(c.value(0).dtype()));
  c.give(0, transposed(grad, c.ints(2), [&](const V& x) { return resized<kind>(c, x, 3); }));
}

// ---- Borders ------------------------------------------------------------------------------------

enum class Border { Reflect, Edge };

// An axis that what is cut off leaves nothing of: its first or last element, as often as is added.
V repeated(const V& x, int64_t axis, int64_t before, int64_t after) {
  const int64_t size = x.size(axis);
  Sizes places(static_cast<size_t>(size + before + after));
  for (size_t i = 0; i < places.size(); ++i)
    places[i] = std::clamp<int64_t>(static_cast<int64_t>(i) - before, 0, size - 1);
  return gather(x, list_of(places), axis);
}
// `padding` has the beginning and the end of the last axis first.
template <Border border>
V bordered(V x, Sizes padding) {
  const auto rank = static_cast<size_t>(x.rank());
  for (size_t i = 0; border == Border::Edge && i < padding.size() / 2; ++i) {
    const auto axis = static_cast<int64_t>(rank - 1 - i);
    int64_t &before = padding[2 * i], &after = padding[2 * i + 1];
    if (std::min(before, int64_t{0}) + std::min(after, int64_t{0}) + x.size(axis) > 0) continue;
    x = repeated(x, axis, std::exchange(before, 0), std::exchange(after, 0));
  }
  Sizes pads(2 * rank, 0);
  for (size_t i = 0; i < padding.size() / 2; ++i) {
    pads[rank - 1 - i] = padding[2 * i];
    pads[2 * rank - 1 - i] = padding[2 * i + 1];
  }
  return onnx("Pad", {x, list_of(pads)},
              border == Border::Reflect ? R"({"mode":"reflect"})" : R"({"mode":"edge"})");
}
template <Border border>
void add_border(Call& c) {  // self, padding
  const V x = c.value(0);
  const Sizes padding = c.ints(1);
  const at::Tensor& out = c.target(0);
  if (border == Border::Reflect && !out.defined())
    for (size_t i = 0; i < padding.size(); ++i) {
      const int64_t size = x.size(x.rank() - 1 - static_cast<int64_t>(i / 2));
      TORCH_CHECK(padding[i] < size,
                  "Argument #4: Padding size should be less than the corresponding input "
                  "dimension, but got: padding (",
                  padding[i & ~size_t{1}], ", ", padding[i | 1], ") at dimension ",
                  x.rank() - 1 - static_cast<int64_t>(i / 2), " of input ", c.tensor(0).sizes());
    }
  c.give(0, bordered<border>(x, padding), c.tensor(0).suggest_memory_format());
}
template <Border border>
void border_backward(Call& c) {  // grad, self, padding
  const Sizes padding = c.ints(2);
  c.give(0,
         transposed(c.value(0), c.tensor(1).sizes().vec(),
                    [&](const V& x) { return bordered<border>(x, padding); }),
         c.tensor(1).suggest_memory_format());
}

// ---- Grids --------------------------------------------------------------------------------------

// interpolation_mode, padding_mode, align_corners from `at` on.
V sampled(const Call& c, const V& x, const V& grid, size_t at) {
  constexpr const char* kModes[] = {"linear", "nearest", "cubic"};
  constexpr const char* kPaddings[] = {"zeros", "border", "reflection"};
  const std::string attributes = std::string(R"({"mode":")") + kModes[c.integer(at)] +
                                 R"(","padding_mode":")" + kPaddings[c.integer(at + 1)] +
                                 R"(","align_corners":)" + (c.flag(at + 2) ? "1}" : "0}");
  const tiny_dtype dtype = wide(x.dtype());
  return cast(onnx("GridSample", {cast(x, dtype), cast(grid, dtype)}, attributes.c_str()),
              x.dtype());
}
template <size_t axes>
void sample(Call& c) {  // input, grid, ..
  if constexpr (axes == 2)
    at::native::check_grid_sampler_2d(c.tensor(0), c.tensor(1));
  else
    at::native::check_grid_sampler_3d(c.tensor(0), c.tensor(1), c.integer(2));
  at::native::check_grid_sampler_common(c.tensor(0), c.tensor(1));
  c.give(0, sampled(c, c.value(0), c.value(1), 2));
}
void sample_backward(Call& c) {  // grad, input, grid, .., output_mask
  const V x = detach(c.value(1));
  const V grid = detach(c.value(2));
  const V both[] = {x, grid};
  const std::vector<V> found = gradients(sampled(c, x, grid, 3), c.value(0), both);
  const auto mask = c.argument(6).toBoolList();
  for (size_t i = 0; i < 2; ++i)
    if (mask[i]) c.give(i, found[i]);
}

// ---- Columns of windows -------------------------------------------------------------------------

// The pictures of these sizes that columns add up to; kernel_size, dilation, padding, stride from
// `at` on.
V folded(const Call& c, const V& columns, const Sizes& sizes, size_t at) {
  const Sizes kernel = for_axes(c.ints(at), 2, 1);
  const Sizes padding = for_axes(c.ints(at + 2), 2, 0);
  const std::string attributes = R"({"dilations":)" + text_of(for_axes(c.ints(at + 1), 2, 1)) +
                                 R"(,"pads":)" +
                                 text_of({padding[0], padding[1], padding[0], padding[1]}) +
                                 R"(,"strides":)" + text_of(for_axes(c.ints(at + 3), 2, 1)) + "}";
  return onnx("Col2Im", {columns, list_of(sizes), list_of(kernel)}, attributes.c_str());
}
// With a batch, whether it has one or not.
V batched(const V& a, int64_t rank) {
  return a.rank() == rank ? a : unsqueeze(a, 0);
}
void fold(Call& c) {  // self, output_size, ..
  const V columns = c.value(0);
  const V pictures = folded(c, batched(columns, 3), c.ints(1), 2);
  c.give(0, columns.rank() == 3 ? pictures : squeeze(pictures, 0));
}
void unfold(Call& c) {  // self, ..
  const V given = c.value(0);
  const V x = batched(given, 4);
  const Sizes sizes = {x.size(2), x.size(3)};
  const Sizes kernel = for_axes(c.ints(1), 2, 1);
  const Sizes dilation = for_axes(c.ints(2), 2, 1);
  const Sizes padding = for_axes(c.ints(3), 2, 0);
  const Sizes stride = for_axes(c.ints(4), 2, 1);
  int64_t count = 1;
  for (size_t i = 0; i < 2; ++i)
    count *= (sizes[i] + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1) / stride[i] + 1;
  const V columns = transposed(x, {x.size(0), x.size(1) * kernel[0] * kernel[1], count},
                               [&](const V& y) { return folded(c, y, sizes, 1); });
  c.give(0, given.rank() == 4 ? columns : squeeze(columns, 0));
}

// clang-format off
constexpr Row kSampling[] = {
    {"upsample_nearest1d.out", resize<Resize::Nearest>},
    {"upsample_nearest2d.out", resize<Resize::Nearest>},
    {"upsample_nearest3d.out", resize<Resize::Nearest>},
    {"_upsample_nearest_exact1d.out", resize<Resize::NearestExact>},
    {"_upsample_nearest_exact2d.out", resize<Resize::NearestExact>},
    {"_upsample_nearest_exact3d.out", resize<Resize::NearestExact>},
    {"upsample_linear1d.out", resize<Resize::Linear>},
    {"upsample_bilinear2d.out", resize<Resize::Linear>},
    {"upsample_trilinear3d.out", resize<Resize::Linear>},
    {"upsample_bicubic2d.out", resize<Resize::Cubic>},
    {"_upsample_bilinear2d_aa.out", resize<Resize::LinearSmooth>},
    {"_upsample_bicubic2d_aa.out", resize<Resize::CubicSmooth>},
    {"upsample_nearest1d_backward.grad_input", resize_backward<Resize::Nearest>},
    {"upsample_nearest2d_backward.grad_input", resize_backward<Resize::Nearest>},
    {"upsample_nearest3d_backward.grad_input", resize_backward<Resize::Nearest>},
    {"_upsample_nearest_exact1d_backward.grad_input", resize_backward<Resize::NearestExact>},
    {"_upsample_nearest_exact2d_backward.grad_input", resize_backward<Resize::NearestExact>},
    {"_upsample_nearest_exact3d_backward.grad_input", resize_backward<Resize::NearestExact>},
    {"upsample_linear1d_backward.grad_input", resize_backward<Resize::Linear>},
    {"upsample_bilinear2d_backward.grad_input", resize_backward<Resize::Linear>},
    {"upsample_trilinear3d_backward.grad_input", resize_backward<Resize::Linear>},
    {"upsample_bicubic2d_backward.grad_input", resize_backward<Resize::Cubic>},
    {"_upsample_bilinear2d_aa_backward.grad_input", resize_backward<Resize::LinearSmooth>},
    {"_upsample_bicubic2d_aa_backward.grad_input", resize_backward<Resize::CubicSmooth>},
    {"reflection_pad1d.out", add_border<Border::Reflect>},
    {"reflection_pad2d", add_border<Border::Reflect>},
    {"reflection_pad2d.out", add_border<Border::Reflect>},
    {"reflection_pad3d.out", add_border<Border::Reflect>},
    {"replication_pad1d.out", add_border<Border::Edge>},
    {"replication_pad2d.out", add_border<Border::Edge>},
    {"replication_pad3d.out", add_border<Border::Edge>},
    {"reflection_pad1d_backward.grad_input", border_backward<Border::Reflect>},
    {"reflection_pad2d_backward", border_backward<Border::Reflect>},
    {"reflection_pad2d_backward.grad_input", border_backward<Border::Reflect>},
    {"reflection_pad3d_backward.grad_input", border_backward<Border::Reflect>},
    {"replication_pad1d_backward.grad_input", border_backward<Border::Edge>},
    {"replication_pad2d_backward", border_backward<Border::Edge>},
    {"replication_pad2d_backward.grad_input", border_backward<Border::Edge>},
    {"replication_pad3d_backward", border_backward<Border::Edge>},
    {"replication_pad3d_backward.grad_input", border_backward<Border::Edge>},
    {"grid_sampler_2d", sample<2>},
    {"grid_sampler_3d", sample<3>},
    {"grid_sampler_2d_backward", sample_backward},
    {"grid_sampler_3d_backward", sample_backward},
    {"col2im", fold},
    {"im2col", unfold},
};
// clang-format on

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  add_rows(m, kSampling);
}

}  // namespace

}  // namespace tiny_torch
