// Elements sampled at computed places, and columns put back into pictures.
#include "base/error.h"
#include "onnx/import/functions.h"
#include "onnx/import/import.h"
#include "onnx/import/table.h"
#include "tensor/col2im.h"
#include "tensor/grid_sample.h"
#include "tensor/regions.h"

namespace tiny::onnx {

namespace {

constexpr Named<Interpolation> kModes[] = {{"linear", Interpolation::Linear},
                                           {"bilinear", Interpolation::Linear},
                                           {"nearest", Interpolation::Nearest},
                                           {"cubic", Interpolation::Cubic},
                                           {"bicubic", Interpolation::Cubic}};
constexpr Named<GridPadding> kPaddings[] = {{"zeros", GridPadding::Zeros},
                                            {"border", GridPadding::Border},
                                            {"reflection", GridPadding::Reflection}};

Tensors import_grid_sample(Call& c) {
  const GridSampleOptions options{
      .mode = named_attr<Interpolation>(c, "mode", "linear", kModes),
      .padding = named_attr<GridPadding>(c, "padding_mode", "zeros", kPaddings),
      .align_corners = c.flag("align_corners", false)};
  return {grid_sample(c.in(0), c.in(1), options)};
}

// The size is that of the picture, with its batch and channels.
Tensors import_affine_grid(Call& c) {
  const Tensor& theta = c.in(0);
  const Shape size = c.sizes(1);
  c.importer().require_found(size);
  c.check(size.size() >= 4 && decide_equal(size[0], size_of(theta, 0)), "theta of shape ",
          theta.shape(), " for a size ", size);
  return {affine_grid(theta, Shape(size.begin() + 2, size.end()), c.flag("align_corners", false))};
}

Tensors import_col2im(Call& c) {
  const Ints image = c.ints(1);
  const size_t axes = image.size();
  const Ints pads = c.ints_attr("pads", Ints(2 * axes, 0));
  c.check(pads.size() == 2 * axes, pads.size(), " pads for ", axes, " axes");
  const auto middle = pads.begin() + static_cast<int64_t>(axes);
  const Window window{.strides = c.ints_attr("strides", Ints(axes, 1)),
                      .dilations = c.ints_attr("dilations", Ints(axes, 1)),
                      .before = Ints(pads.begin(), middle),
                      .after = Ints(middle, pads.end()),
                      .kernel = c.ints(2)};
  return {col2im(c.in(0), image, window)};
}

// ---- Regions of pictures.

constexpr Named<bool> kIsMax[] = {{"avg", false}, {"max", true}};
constexpr Named<bool> kIsHalfPixel[] = {{"half_pixel", true}, {"output_half_pixel", false}};

Tensors import_roi_align(Call& c) {
  // Coordinates were those of the result's pixels before the attribute said so.
  const bool half_pixel = c.version() >= 16 && named_attr<bool>(c, "coordinate_transformation_mode",
                                                                "half_pixel", kIsHalfPixel);
  RoiAlignOptions options{.size = {c.attr("output_height", 1), c.attr("output_width", 1)},
                          .sampling = c.attr("sampling_ratio", 0),
                          .spatial_scale = static_cast<double>(c.real_attr("spatial_scale", 1)),
                          .half_pixel = half_pixel,
                          .is_max = named_attr<bool>(c, "mode", "avg", kIsMax)};
  if (options.sampling == 0 && !options.is_max) {
    const RoiPlaces places = roi_places(c.in(0), c.in(1), options);
    options.places = {c.importer().computed_size(places.y, places.most_y, c.node()),
                      c.importer().computed_size(places.x, places.most_x, c.node())};
  }
  return {roi_align(c.in(0), c.in(1), c.in(2), options)};
}

Tensors import_max_roi_pool(Call& c) {
  return {max_roi_pool(c.in(0), c.in(1), c.ints_attr("pooled_shape", {}),
                       static_cast<double>(c.real_attr("spatial_scale", 1)))};
}

// Inputs: x, the weights, the offsets, a bias, a mask.
Tensors import_deform_conv(Call& c) {
  const Window w = convolution_window(c, c.in(0), c.in(1));
  if (c.in(0).rank() != 4) c.unsupported("a deformed convolution over other than 2 axes");
  if (w.padding != Padding::Explicit) c.unsupported("the attribute auto_pad");
  return {deform_conv(c.in(0), c.in(1), c.in(2), c.in_or(3, Tensor()), c.in_or(4, Tensor()),
                      {.strides = w.strides,
                       .dilations = w.dilations,
                       .before = w.before,
                       .after = w.after,
                       .groups = w.groups,
                       .offset_groups = c.attr("offset_group", 1)})};
}

constexpr int64_t kNow = kNewestOpset;

// clang-format off
constexpr Row kRows[] = {
    {"GridSample", 16, kNow, import_grid_sample},
    {"AffineGrid", 20, kNow, import_affine_grid, operand(1)},
    {"Col2Im",     18, kNow, import_col2im, operand(1) | operand(2)},
    {"RoiAlign",   10, kNow, import_roi_align},
    {"MaxRoiPool", 1,  kNow, import_max_roi_pool},
    {"DeformConv", 19, kNow, import_deform_conv},
    {"GridSample", 1,  1,    import_grid_sample, 0, nullptr, kContributed},
};
// clang-format on

}  // namespace

std::span<const Row> sampling_rows() {
  return kRows;
}

}  // namespace tiny::onnx
