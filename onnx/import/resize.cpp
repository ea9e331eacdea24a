// Resize.
#include "tensor/resize.h"

#include <algorithm>

#include "base/error.h"
#include "onnx/import/functions.h"
#include "onnx/import/import.h"
#include "onnx/import/table.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/movement.h"

namespace tiny::onnx {

namespace {

constexpr Named<Interpolation> kModes[] = {{"nearest", Interpolation::Nearest},
                                           {"linear", Interpolation::Linear},
                                           {"cubic", Interpolation::Cubic}};
constexpr Named<Coordinates> kCoordinates[] = {
    {"half_pixel", Coordinates::HalfPixel},
    {"half_pixel_symmetric", Coordinates::HalfPixelSymmetric},
    {"pytorch_half_pixel", Coordinates::PytorchHalfPixel},
    {"tf_half_pixel_for_nn", Coordinates::HalfPixelNearest},
    {"align_corners", Coordinates::AlignCorners},
    {"asymmetric", Coordinates::Asymmetric},
    {"tf_crop_and_resize", Coordinates::CropAndResize}};
constexpr Named<NearestMode> kNearestModes[] = {
    {"round_prefer_floor", NearestMode::RoundPreferFloor},
    {"round_prefer_ceil", NearestMode::RoundPreferCeil},
    {"floor", NearestMode::Floor},
    {"ceil", NearestMode::Ceil}};
constexpr Named<AspectRatio> kPolicies[] = {{"stretch", AspectRatio::Stretch},
                                            {"not_larger", AspectRatio::NotLarger},
                                            {"not_smaller", AspectRatio::NotSmaller}};

// Version 10: asymmetric coordinates; the element below, and above it along axes that shrink.
Tensors import_resize_10(Call& c) {
  const Tensor& x = c.in(0);
  ResizeOptions options;
  options.mode = named_attr<Interpolation>(c, "mode", "nearest", std::span(kModes).first(2));
  options.coordinates = Coordinates::Asymmetric;
  const std::vector<double> scales = c.reals(1);
  c.check(std::ssize(scales) == x.rank(), scales.size(), " scales of ", x.rank(), " axes");
  Tensor out = x;
  for (const bool shrinks : {true, false}) {
    Ints axes;
    std::vector<double> own;
    for (const int64_t axis : every_axis(x.rank())) {
      const double scale = scales[static_cast<size_t>(axis)];
      if ((scale < 1) != shrinks) continue;
      axes.push_back(axis);
      own.push_back(scale);
    }
    options.nearest_mode = shrinks ? NearestMode::Ceil : NearestMode::Floor;
    if (!axes.empty()) out = resize_by(out, axes, own, options);
  }
  return {out};
}

// Where a run finds sizes of a picture that keeps its proportions, it finds the scale and what
// follows from it too.
void keep_found_proportions(Call& c, const Ints& axes, Shape& sizes, ResizeOptions& options) {
  const Tensor& x = c.in(0);
  Shape all = sizes;
  for (int64_t axis : axes) all.push_back(size_of(x, axis));
  const bool has_numbers =
      std::ranges::all_of(all, [](const tiny::Dim& size) { return size.is_const(); });
  if (options.aspect_ratio == AspectRatio::Stretch || has_numbers) return;
  const Tensor scale = found_aspect_scale(x, axes, sizes, options.aspect_ratio);
  for (size_t i = 0; i < axes.size(); ++i) {
    const Tensor from = size_tensor(c.context(), size_of(x, axes[i]));
    const Tensor exact = scale * cast(from, kFloat64);
    const Tensor count = cast(floor(exact + tiny::number(exact, 0.5)), kInt64);
    const bool is_bound =
        options.aspect_ratio == AspectRatio::NotLarger && !c.importer().is_open(sizes[i]);
    sizes[i] = is_bound ? c.importer().computed_size(count, sizes[i], c.node())
                        : c.importer().open_size(count, c.node());
  }
  options.found_scale = reshape(scale, Shape());
  options.aspect_ratio = AspectRatio::Stretch;
}

Tensors import_resize(Call& c) {
  const Tensor& x = c.in(0);
  ResizeOptions options;
  options.mode = named_attr<Interpolation>(c, "mode", "nearest", kModes);
  options.coordinates =
      named_attr<Coordinates>(c, "coordinate_transformation_mode", "half_pixel", kCoordinates);
  options.nearest_mode =
      named_attr<NearestMode>(c, "nearest_mode", "round_prefer_floor", kNearestModes);
  options.cubic_coefficient = c.real_attr("cubic_coeff_a", -0.75f);
  options.antialias = c.flag("antialias", false);
  options.exclude_outside = c.flag("exclude_outside", false);
  options.extrapolation_value = c.real_attr("extrapolation_value", 0.0f);
  options.aspect_ratio =
      named_attr<AspectRatio>(c, "keep_aspect_ratio_policy", "stretch", kPolicies);
  if (options.coordinates == Coordinates::CropAndResize && c.has(1)) {
    if (c.known(1))
      options.region = c.reals(1);
    else
      options.found_region = c.in(1);
  }
  const Ints axes = axes_of(c.ints_attr("axes", every_axis(x.rank())), x.rank());
  // Scales may be there but empty.
  const std::vector<double> scales = c.has(2) ? c.reals(2) : std::vector<double>();
  Shape sizes = c.has(3) ? c.sizes(3) : Shape();
  c.check(scales.empty() != sizes.empty(), "it needs either scales or sizes");
  if (!sizes.empty()) keep_found_proportions(c, axes, sizes, options);
  return {scales.empty() ? resize(x, axes, sizes, options) : resize_by(x, axes, scales, options)};
}

constexpr int64_t kNow = kNewestOpset;

// clang-format off
constexpr Row kRows[] = {
    {"Resize", 10, 10,   import_resize_10, operand(1)},
    {"Resize", 11, kNow, import_resize,    operand(2) | operand(3)},
};
// clang-format on

}  // namespace

std::span<const Row> resize_rows() {
  return kRows;
}

}  // namespace tiny::onnx
