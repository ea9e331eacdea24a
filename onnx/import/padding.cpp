// Pads of every mode, and other operators that choose elements by position: mirrored, repeated,
// stretched.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/checked.h"
#include "base/error.h"
#include "engine/host_room.h"
#include "onnx/import/functions.h"
#include "onnx/import/table.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/movement.h"

namespace tiny::onnx {

namespace {

// The element that stands at position `at`, which may be outside 0 .. n-1.
int64_t source_of(const std::string& mode, int64_t at, int64_t n) {
  if (mode == "edge") return std::clamp<int64_t>(at, 0, n - 1);
  if (mode == "wrap") return floor_mod(at, n);
  // reflect: the ends are not repeated.
  if (n == 1) return 0;
  const int64_t period = 2 * (n - 1);
  const int64_t place = floor_mod(at, period);
  return place < n ? place : period - place;
}

// `value` around x; its dtype is x's.
Tensor pad_with(const Tensor& x, const Ints& before, const Ints& after, const Tensor& value) {
  const Tensor padded = pad(x, to_shape(before), to_shape(after));
  if (value.node().is_const() && value.node().const_bits() == 0) return padded;
  const Tensor inside =
      pad(full(x.context_ref(), kBool, x.shape(), 1), to_shape(before), to_shape(after));
  return where(inside, padded, value);
}

Tensors padded(Call& c, const Ints& pads, const std::optional<Ints>& given_axes,
               const Tensor& value) {
  const Tensor& x = c.in(0);
  const std::string mode = c.text_attr("mode", "constant");
  c.check(mode == "constant" || mode == "reflect" || mode == "edge" ||
              (mode == "wrap" && c.version() >= 19),
          "the attribute mode is \"", mode, "\"");
  Ints axes(static_cast<size_t>(x.rank()));
  for (size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int64_t>(i);
  if (given_axes) axes = axes_of(*given_axes, x.rank());
  c.check(pads.size() == 2 * axes.size(), pads.size(), " pads for ", axes.size(), " axes");
  Ints before(static_cast<size_t>(x.rank())), after(static_cast<size_t>(x.rank()));
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(axes[i]);
    before[axis] = pads[i];
    after[axis] = pads[axes.size() + i];
    const int64_t size = checked_add(checked_add(pads[i], pads[axes.size() + i], "a pad"),
                                     dim_of(x, axes[i]), "a pad");
    c.check(size >= 0, "pads ", list_text(pads), " take more than there is of shape ", x.shape());
  }
  if (mode == "constant") return {pad_with(x, before, after, value)};
  Tensor out = x;
  for (int64_t axis : axes) {
    const int64_t n = dim_of(x, axis);
    const auto a = static_cast<size_t>(axis);
    if (before[a] == 0 && after[a] == 0) continue;
    Ints from;
    HostRoom room(*c.context(), std::max<int64_t>(0, before[a] + n + after[a]), sizeof(int64_t));
    for (int64_t at = -before[a]; at < n + after[a]; ++at) {
      room.check();
      c.check(n > 0, "mode ", mode, " of an axis without elements");
      from.push_back(source_of(mode, at, n));
    }
    out = take(out, from, axis);
  }
  return {out};
}

Tensors import_pad_attributes(Call& c) {
  const Ints pads = c.ints_attr(c.version() < 2 ? "paddings" : "pads", {});
  return padded(c, pads, std::nullopt, number(c.in(0), c.real_attr("value", 0.0f)));
}

Tensors import_pad(Call& c) {
  const Tensor& x = c.in(0);
  const Tensor value = c.has(2) ? reshape(c.in(2), {}) : number_int(x, 0);
  return padded(c, c.ints(1), c.has(3) ? std::optional<Ints>(c.ints(3)) : std::nullopt,
                cast(value, x.dtype()));
}

Tensors import_center_crop_pad(Call& c) {
  Tensor x = c.in(0);
  Ints axes(static_cast<size_t>(x.rank()));
  for (size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int64_t>(i);
  axes = axes_of(c.ints_attr("axes", axes), x.rank());
  const Ints sizes = c.ints(1);
  c.check(sizes.size() == axes.size(), sizes.size(), " sizes for ", axes.size(), " axes");
  Ints before(static_cast<size_t>(x.rank())), after(static_cast<size_t>(x.rank()));
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(axes[i]);
    c.check(sizes[i] >= 0, "a size is negative");
    const int64_t more = checked_add(sizes[i], -dim_of(x, axes[i]), "a size");
    // Where the two sides differ, the end has more of what is added and of what is cut.
    before[axis] = more >= 0 ? more / 2 : -((-more) / 2);
    after[axis] = more - before[axis];
  }
  return {pad(x, to_shape(before), to_shape(after))};
}

// ---- Upsample, the forerunner of Resize: coordinates are position / scale.

Tensor stretched_linear(const Tensor& x, int64_t axis, int64_t size, double scale) {
  const int64_t n = dim_of(x, axis);
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
  const Tensor weights = cast(from_data(x.context_ref(), kFloat64, {size}, share.data(),
                                        static_cast<int64_t>(share.size() * sizeof(double))),
                              x.dtype());
  Ints shape(static_cast<size_t>(x.rank()), 1);
  shape[static_cast<size_t>(axis)] = size;
  const Tensor w = reshape(weights, to_shape(shape));
  return take(x, low, axis) * (number(x, 1.0) - w) + take(x, high, axis) * w;
}

Tensors upsampled(Call& c, const std::vector<double>& scales) {
  Tensor x = c.in(0);
  const std::string mode = c.text_attr("mode", "nearest");
  c.check(mode == "nearest" || mode == "linear" || mode == "bilinear", "the attribute mode is \"",
          mode, "\"");
  c.check(scales.size() == static_cast<size_t>(x.rank()), scales.size(), " scales for ", x.rank(),
          " axes");
  for (int64_t axis = 0; axis < x.rank(); ++axis) {
    const double scale = scales[static_cast<size_t>(axis)];
    const int64_t n = dim_of(x, axis);
    c.check(scale >= 1 && scale * static_cast<double>(n) < 0x1p31, "a scale is ", scale);
    const auto size = static_cast<int64_t>(std::floor(static_cast<double>(n) * scale));
    if (scale == 1) continue;
    if (mode != "nearest") {
      x = stretched_linear(x, axis, size, scale);
      continue;
    }
    Ints from;
    HostRoom room(x.context(), size, sizeof(int64_t));
    for (int64_t i = 0; i < size; ++i) {
      room.check();
      from.push_back(std::min(static_cast<int64_t>(static_cast<double>(i) / scale), n - 1));
    }
    x = take(x, from, axis);
  }
  return {x};
}

Tensors import_upsample_attribute(Call& c) {
  const Attribute* a = c.any_attribute("scales");
  c.check(a != nullptr && a->type == AttributeType::Floats, "it needs the attribute scales");
  return upsampled(c, {a->floats.begin(), a->floats.end()});
}

Tensors import_upsample(Call& c) {
  return upsampled(c, c.reals(1));
}

constexpr int64_t kNow = kNewestOpset;

// clang-format off
constexpr Row kRows[] = {
    {"Pad",           1,  10,   import_pad_attributes},
    {"Pad",           11, kNow, import_pad, operand(1) | operand(3)},
    {"CenterCropPad", 18, kNow, import_center_crop_pad, operand(1)},
    {"Upsample",      7,  8,    import_upsample_attribute},
    {"Upsample",      9,  9,    import_upsample, operand(1)},
};
// clang-format on

}  // namespace

std::span<const Row> padding_rows() {
  return kRows;
}

}  // namespace tiny::onnx
