// Pads of every mode, and Upsample, the forerunner of Resize.
#include <optional>

#include "base/error.h"
#include "onnx/import/functions.h"
#include "onnx/import/import.h"
#include "onnx/import/table.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/movement.h"
#include "tensor/padding.h"
#include "tensor/resize.h"

namespace tiny::onnx {

namespace {

constexpr Named<PadMode> kModes[] = {{"constant", PadMode::Constant},
                                     {"reflect", PadMode::Reflect},
                                     {"edge", PadMode::Edge},
                                     {"wrap", PadMode::Wrap}};

// Of positions of an axis of which the run knows the size, which may be outside: the elements that
// stand there.
Tensor sources_of(PadMode mode, const Tensor& at, const tiny::Dim& n) {
  const auto size = [&](const tiny::Dim& d) { return size_tensor(at.context_ref(), d); };
  if (mode == PadMode::Wrap) return floor_mod(at, size(maximum(n, 1)));
  const tiny::Dim last = maximum(n - 1, 0);
  if (mode == PadMode::Edge) return minimum(maximum(at, tiny::number_int(at, 0)), size(last));
  const Tensor place = floor_mod(at, size(maximum(last * 2, 1)));
  return minimum(place, sub(size(last * 2), place));
}

// `pads` has the beginnings of all axes, then the ends.
Tensors padded(const Call& c, const Ints& pads, const std::optional<Ints>& given_axes,
               const Tensor& value) {
  const Tensor& x = c.in(0);
  // Wrap is as old as version 19.
  const size_t modes = c.version() < 19 ? 3 : 4;
  const PadMode mode = named_attr<PadMode>(c, "mode", "constant", std::span(kModes).first(modes));
  const Ints axes = given_axes ? axes_of(*given_axes, x.rank()) : every_axis(x.rank());
  c.check(pads.size() == 2 * axes.size(), pads.size(), " pads for ", axes.size(), " axes");
  Ints before(static_cast<size_t>(x.rank())), after(static_cast<size_t>(x.rank()));
  for (size_t i = 0; i < axes.size(); ++i) {
    before[static_cast<size_t>(axes[i])] = pads[i];
    after[static_cast<size_t>(axes[i])] = pads[axes.size() + i];
  }
  Tensor inner = x;
  for (size_t axis = 0; axis < before.size() && mode != PadMode::Constant; ++axis) {
    const tiny::Dim n = x.shape()[axis];
    if (!c.importer().is_computed(n)) continue;
    const Tensor at = arange(c.context(), kInt64, n + (before[axis] + after[axis]));
    const Tensor from = sources_of(mode, sub(at, tiny::number_int(at, before[axis])), n);
    inner = gather(inner, from, static_cast<int64_t>(axis));
    before[axis] = after[axis] = 0;
  }
  return {pad(inner, before, after, mode, value)};
}

Tensors import_pad_attributes(Call& c) {
  const Ints pads = c.ints_attr(c.version() < 2 ? "paddings" : "pads", {});
  return padded(c, pads, std::nullopt, number(c.in(0), c.real_attr("value", 0.0f)));
}

Tensors import_pad(Call& c) {
  return padded(c, c.ints(1), c.has(3) ? std::optional<Ints>(c.ints(3)) : std::nullopt,
                c.in_or(2, Tensor()));
}

Tensors import_center_crop_pad(Call& c) {
  const Tensor& x = c.in(0);
  const Ints axes = axes_of(c.ints_attr("axes", every_axis(x.rank())), x.rank());
  return {center_crop_pad(x, axes, c.ints(1))};
}

// ---- Upsample: coordinates are position / scale.

constexpr Named<Interpolation> kUpsampleModes[] = {{"nearest", Interpolation::Nearest},
                                                   {"linear", Interpolation::Linear},
                                                   {"bilinear", Interpolation::Linear}};

Tensors upsampled(const Call& c, const std::vector<double>& scales) {
  Tensor x = c.in(0);
  const auto mode = named_attr<Interpolation>(c, "mode", "nearest", kUpsampleModes);
  c.check(std::ssize(scales) == x.rank(), scales.size(), " scales for ", x.rank(), " axes");
  for (double scale : scales) c.check(scale >= 1, "a scale is ", scale, "; wanted 1 or more");
  if (mode == Interpolation::Nearest)
    return {
        resize_by(x, every_axis(x.rank()), scales,
                  {.coordinates = Coordinates::Asymmetric, .nearest_mode = NearestMode::Floor})};
  for (int64_t axis = 0; axis < x.rank(); ++axis)
    x = stretch_linear(x, axis, scales[static_cast<size_t>(axis)]);
  return {x};
}

Tensors import_upsample_attribute(Call& c) {
  const std::vector<float> scales = c.floats_attr("scales");
  c.check(!scales.empty(), "it needs the attribute scales");
  return upsampled(c, {scales.begin(), scales.end()});
}

// Of pictures [batch, channels, height, width] alone.
Tensors import_upsample_pictures(Call& c) {
  c.check(c.in(0).rank() == 4, "it takes pictures; got shape ", c.in(0).shape());
  return upsampled(c, {1, 1, static_cast<double>(c.real_attr("height_scale", 0)),
                       static_cast<double>(c.real_attr("width_scale", 0))});
}

Tensors import_upsample(Call& c) {
  return upsampled(c, c.reals(1));
}

constexpr int64_t kNow = kNewestOpset;

// clang-format off
constexpr Row kRows[] = {
    {"Pad",           1,  10,   import_pad_attributes},
    {"Pad",           11, kNow, import_pad, operand(1) | operand(3)},
    {"Pad",           1,  1,    import_pad, operand(1), nullptr, kContributed},
    {"CenterCropPad", 18, kNow, import_center_crop_pad, operand(1)},
    {"Upsample",      1,  6,    import_upsample_pictures},
    {"Upsample",      7,  8,    import_upsample_attribute},
    {"Upsample",      9,  9,    import_upsample, operand(1)},
};
// clang-format on

}  // namespace

std::span<const Row> padding_rows() {
  return kRows;
}

}  // namespace tiny::onnx
