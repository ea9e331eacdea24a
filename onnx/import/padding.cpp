// Pads of every mode, and Upsample, the forerunner of Resize.
#include <algorithm>
#include <optional>
#include <vector>

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

// Of positions of an axis of `n` elements, which the run knows, which may be outside: the elements
// that stand there.
Tensor sources_of(PadMode mode, const Tensor& at, const Tensor& n) {
  const auto number = [&](int64_t value) { return tiny::number_int(at, value); };
  if (mode == PadMode::Wrap) return floor_mod(at, maximum(n, number(1)));
  const Tensor last = maximum(sub(n, number(1)), number(0));
  if (mode == PadMode::Edge) return minimum(maximum(at, number(0)), last);
  const Tensor twice = mul(last, number(2));
  const Tensor place = floor_mod(at, maximum(twice, number(1)));
  return minimum(place, sub(twice, place));
}

// Wrap is as old as version 19, but exporters write it to older ones, and onnxruntime takes it.
PadMode mode_of(const Call& c) {
  return named_attr<PadMode>(c, "mode", "constant", kModes);
}

// How many elements more there are at the two ends of an axis (int64 []); negative: fewer.
struct Ends {
  Tensor before;
  Tensor after;
};

// An axis with other ends, where the run finds how many elements there are or are to be: `count`.
Tensor padded_axis(const Call& c, const Tensor& x, size_t axis, const Ends& ends,
                   const tiny::Dim& count, PadMode mode, const Tensor& value) {
  const Tensor size = size_tensor(c.context(), x.shape()[axis]), none = number_int(c, 0);
  const Tensor places = arange(c.context(), kInt64, count);
  const auto along = static_cast<int64_t>(axis);
  if (mode != PadMode::Constant) {
    // What stays after the cuts is what is repeated.
    const Tensor kept = add(size, add(minimum(ends.before, none), minimum(ends.after, none)));
    const Tensor from = sources_of(mode, sub(places, maximum(ends.before, none)), kept);
    return gather(x, sub(from, minimum(ends.before, none)), along);
  }
  // What is outside is the one value behind the last element.
  Ints nothing(static_cast<size_t>(x.rank())), one = nothing;
  one[axis] = 1;
  const Tensor at = sub(places, ends.before);
  const Tensor is_inside = bit_and(less_equal(none, at), less(at, size));
  return gather(pad(x, nothing, one, mode, value), where(is_inside, at, size), along);
}

// `pads` has the beginnings of all axes, then the ends.
Tensors padded(const Call& c, const Tensor& x, const Ints& pads,
               const std::optional<Ints>& given_axes, const Tensor& value) {
  const PadMode mode = mode_of(c);
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
    if (n.is_const()) continue;
    const auto number = [&](int64_t k) {
      return full_bits(c.context(), kInt64, {}, static_cast<uint64_t>(k));
    };
    inner = padded_axis(c, inner, axis, {number(before[axis]), number(after[axis])},
                        n + (before[axis] + after[axis]), mode, value);
    before[axis] = after[axis] = 0;
  }
  return {pad(inner, before, after, mode, value)};
}

Tensors import_pad_attributes(Call& c) {
  const Ints pads = c.ints_attr(c.version() < 2 ? "paddings" : "pads", {});
  return padded(c, c.in(0), pads, std::nullopt, number(c.in(0), c.real_attr("value", 0.0f)));
}

// Pads that runs find.
Tensors padded_as_found(Call& c) {
  Tensor x = c.in(0);
  const Ints axes = c.has(3) ? axes_of(c.ints(3), x.rank()) : every_axis(x.rank());
  std::vector<Tensor> found(2 * axes.size());
  const auto find = [&](size_t i, const Tensor& count) -> tiny::Dim {
    if (i < found.size()) found[i] = count;
    return 0;
  };
  Shape pads = c.sizes(1, find);
  c.check(pads.size() == found.size(), pads.size(), " pads for ", axes.size(), " axes");
  Ints known(pads.size());
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto end = i + axes.size();
    const bool are_known = pads[i].is_const() && pads[end].is_const() && !found[i] && !found[end];
    if (are_known) {
      known[i] = pads[i].value();
      known[end] = pads[end].value();
      continue;
    }
    const auto more = [&](size_t k) {
      return found[k] ? reshape(found[k], {}) : size_tensor(c.context(), pads[k]);
    };
    const Ends ends{more(i), more(end)};
    const auto axis = static_cast<size_t>(axes[i]);
    const Tensor left =
        add(size_tensor(c.context(), x.shape()[axis]), add(ends.before, ends.after));
    const tiny::Dim count = c.importer().open_size(maximum(left, number_int(c, 0)), c.node());
    x = padded_axis(c, x, axis, ends, count, mode_of(c), c.in_or(2, Tensor()));
  }
  return padded(c, x, known, axes, c.in_or(2, Tensor()));
}

Tensors import_pad(Call& c) {
  if (c.importer().is_decided_by_data(c.in(1))) return padded_as_found(c);
  const Tensor& x = c.in(0);
  const Shape pads = c.sizes(1);
  const auto axes = c.has(3) ? std::optional<Ints>(c.ints(3)) : std::nullopt;
  const bool is_free = !all_const(pads) && mode_of(c) == PadMode::Constant;
  if (!is_free) return padded(c, x, const_dims(pads), axes, c.in_or(2, Tensor()));
  const Ints named = axes ? axes_of(*axes, x.rank()) : every_axis(x.rank());
  c.check(pads.size() == 2 * named.size(), pads.size(), " pads for ", named.size(), " axes");
  Shape before(static_cast<size_t>(x.rank()), tiny::Dim(0)), after = before;
  for (size_t i = 0; i < named.size(); ++i) {
    before[static_cast<size_t>(named[i])] = pads[i];
    after[static_cast<size_t>(named[i])] = pads[named.size() + i];
  }
  return {pad(x, before, after, c.has(2) ? c.real(2) : 0.0)};
}

Tensors import_center_crop_pad(Call& c) {
  const Tensor& x = c.in(0);
  const Ints axes = axes_of(c.ints_attr("axes", every_axis(x.rank())), x.rank());
  const auto is_found = [&](int64_t axis) { return c.importer().is_computed(size_of(x, axis)); };
  if (!c.importer().is_decided_by_data(c.in(1)) && std::ranges::none_of(axes, is_found))
    return {center_crop_pad(x, axes, c.ints(1))};
  const Shape sizes = c.sizes(1);
  c.check(sizes.size() == axes.size(), sizes.size(), " sizes for ", axes.size(), " axes");
  Tensor out = x;
  for (size_t i = 0; i < axes.size(); ++i) {
    const Tensor more =
        sub(size_tensor(c.context(), sizes[i]), size_tensor(c.context(), size_of(x, axes[i])));
    // The half that is rounded down is the one before.
    const Tensor half = floor_div(maximum(more, neg(more)), number_int(c, 2));
    const Tensor before = where(less(more, number_int(c, 0)), neg(half), half);
    out = padded_axis(c, out, static_cast<size_t>(axes[i]), {before, Tensor()}, sizes[i],
                      PadMode::Constant, Tensor());
  }
  return {out};
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
