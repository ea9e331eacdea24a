// Convolutions and pools.
#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "base/error.h"
#include "onnx/import/functions.h"
#include "onnx/import/table.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"
#include "tensor/window.h"

namespace tiny::onnx {

namespace {

// Sizes beyond this are no picture, and products of two of them still fit.
constexpr int64_t kSizeMax = int64_t{1} << 31;

Shape sizes_in_space(const Call& c, const Tensor& x) {
  c.check(x.rank() >= 3, "it takes a batch, channels and spatial axes; got shape ", x.shape());
  return x.shape().from(2);
}

Ints spatial_of(const Call& c, const Tensor& x) {
  return const_dims(sizes_in_space(c, x));
}

// A list attribute with `count` values.
Ints listed(const Call& c, const char* name, size_t count, int64_t fallback, int64_t least) {
  const Ints values = c.ints_attr(name, Ints(count, fallback));
  c.check(values.size() == count, "the attribute ", name, " has ", values.size(),
          " values and needs ", count);
  for (int64_t v : values)
    c.check(v >= least && v < kSizeMax, "the attribute ", name, " = ", list_text(values));
  return values;
}

// How windows lie on the spatial axes: kernel_shape, strides, dilations, pads and auto_pad.
struct Windows {
  Ints kernel;
  WindowOptions options;
};

// Padding that makes the output's size n / stride, rounded up.
void pad_same(const Shape& spatial, bool upper, Windows& w) {
  WindowOptions& o = w.options;
  for (size_t i = 0; i < spatial.size(); ++i) {
    const int64_t reach = (w.kernel[i] - 1) * o.dilations[i] + 1;
    // With a stride of 1 the size does not matter.
    const tiny::Dim steps = floor_div(spatial[i] + (o.strides[i] - 1), o.strides[i]) - 1;
    const tiny::Dim missing = steps * tiny::Dim(o.strides[i]) + reach - spatial[i];
    const int64_t total = std::max<int64_t>(0, missing.value());
    o.before[i] = upper ? total / 2 : total - total / 2;
    o.after[i] = total - o.before[i];
  }
}

Windows windows_attributes(const Call& c, const Shape& spatial,
                           const std::optional<Ints>& weights = {}) {
  const size_t axes = spatial.size();
  Windows w;
  w.kernel = c.ints_attr("kernel_shape", weights.value_or(Ints()));
  c.check(w.kernel.size() == axes, "the attribute kernel_shape has ", w.kernel.size(),
          " values for ", axes, " spatial axes");
  for (int64_t k : w.kernel) c.check(k > 0 && k < kSizeMax, "a kernel ", list_text(w.kernel));
  if (weights)
    c.check(w.kernel == *weights, "the attribute kernel_shape is ", list_text(w.kernel),
            ", the weights have ", list_text(*weights));
  WindowOptions& o = w.options;
  o.strides = listed(c, "strides", axes, 1, 1);
  o.dilations = listed(c, "dilations", axes, 1, 1);
  const Ints pads = listed(c, "pads", 2 * axes, 0, 0);
  o.before.assign(pads.begin(), pads.begin() + static_cast<int64_t>(axes));
  o.after.assign(pads.begin() + static_cast<int64_t>(axes), pads.end());
  const std::string mode = c.text_attr("auto_pad", "NOTSET");
  if (mode == "SAME_UPPER" || mode == "SAME_LOWER")
    pad_same(spatial, mode == "SAME_UPPER", w);
  else if (mode == "VALID")
    o.before = o.after = Ints(axes, 0);
  else
    c.check(mode == "NOTSET", "the attribute auto_pad is \"", mode, "\"");
  return w;
}

// ---- Convolutions.

Tensor convolution(const Call& c, const Tensor& x, const Tensor& weights, const Tensor& bias) {
  const Shape spatial = sizes_in_space(c, x);
  c.check(weights.rank() == x.rank(), "weights with ", weights.rank(), " axes for an input with ",
          x.rank());
  const Windows w = windows_attributes(c, spatial, spatial_of(c, weights));
  return conv(x, weights, bias, w.options, c.attr("group", 1));
}

Tensors import_conv(Call& c) {
  return {convolution(c, c.in(0), c.in(1), c.in_or(2, Tensor()))};
}

// The input, or the weights per output channel, less their zero point.
Tensor centered(const Call& c, size_t i, size_t zero) {
  const Tensor wide = cast(c.in(i), kInt32);
  if (!c.has(zero)) return wide;
  const Tensor point = cast(c.in(zero), kInt32);
  if (point.rank() == 0 || dim_of(point, 0) == 1) return wide - reshape(point, Shape());
  Ints shape(static_cast<size_t>(wide.rank()), 1);
  shape[0] = dim_of(point, 0);
  return wide - reshape(point, to_shape(shape));
}

Tensors import_conv_integer(Call& c) {
  return {convolution(c, centered(c, 0, 2), centered(c, 1, 3), Tensor())};
}

// Inputs: x, its scale and zero point; the weights and theirs; the result's; a bias of int32.
Tensors import_qlinear_conv(Call& c) {
  const Tensor total = convolution(c, centered(c, 0, 2), centered(c, 3, 5), c.in_or(8, Tensor()));
  Tensor scale = cast(c.in(4), kFloat32);
  if (scale.rank() == 1 && dim_of(scale, 0) > 1) {
    Ints shape(static_cast<size_t>(total.rank() - 1), 1);
    shape[0] = dim_of(scale, 0);
    scale = reshape(scale, to_shape(shape));
  } else {
    scale = reshape(scale, Shape());
  }
  const auto one = [&](size_t i) { return reshape(cast(c.in(i), kFloat32), Shape()); };
  return {quantized(cast(total, kFloat32) * (one(1) * scale / one(6)), reshape(c.in(7), Shape()),
                    c.in(7).dtype())};
}

// Pads and output sizes of a transposed convolution; `pads` may be chosen by the output's shape.
struct Transposed {
  WindowOptions options;
  Ints more;
};
Transposed transposed_of(const Call& c, const Ints& spatial, const Ints& kernel) {
  const size_t axes = spatial.size();
  Transposed t;
  WindowOptions& o = t.options;
  o.strides = listed(c, "strides", axes, 1, 1);
  o.dilations = listed(c, "dilations", axes, 1, 1);
  t.more = listed(c, "output_padding", axes, 0, 0);
  const Ints pads = listed(c, "pads", 2 * axes, 0, 0);
  o.before.assign(pads.begin(), pads.begin() + static_cast<int64_t>(axes));
  o.after.assign(pads.begin() + static_cast<int64_t>(axes), pads.end());
  const std::string mode = c.text_attr("auto_pad", "NOTSET");
  const bool same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
  c.check(same || mode == "VALID" || mode == "NOTSET", "the attribute auto_pad is \"", mode, "\"");
  if (mode == "VALID") o.before = o.after = Ints(axes, 0);
  auto shape = c.ints_attr("output_shape");
  if (shape && shape->size() > axes)
    shape->erase(shape->begin(), shape->end() - static_cast<int64_t>(axes));
  if (!shape && !same) return t;
  if (shape)
    for (int64_t size : *shape)
      c.check(size > 0 && size < kSizeMax, "the attribute output_shape = ", list_text(*shape));
  c.check(!shape || shape->size() == axes, "the attribute output_shape has too few values");
  for (size_t i = 0; i < axes; ++i) {
    const int64_t wanted = shape ? (*shape)[i] : checked_mul(spatial[i], o.strides[i], "a stride");
    const int64_t full =
        (spatial[i] - 1) * o.strides[i] + t.more[i] + (kernel[i] - 1) * o.dilations[i] + 1;
    const int64_t total = full - wanted;
    o.before[i] = mode == "SAME_UPPER" ? floor_div(total, 2) : total - floor_div(total, 2);
    if (total < 0) o.before[i] = std::max<int64_t>(0, o.before[i]);
    o.after[i] = total - o.before[i];
  }
  return t;
}

Tensors import_conv_transpose(Call& c) {
  const Tensor& x = c.in(0);
  const Tensor& weights = c.in(1);
  const Ints spatial = spatial_of(c, x);
  const Ints kernel = spatial_of(c, weights);
  c.check(weights.rank() == x.rank(), "weights with ", weights.rank(), " axes");
  c.check(c.ints_attr("kernel_shape", kernel) == kernel, "the attribute kernel_shape");
  const Transposed t = transposed_of(c, spatial, kernel);
  return {conv_transpose(x, weights, c.in_or(2, Tensor()), t.options, t.more, c.attr("group", 1))};
}

// ---- Pools.

Ints kernel_axes(const Tensor& views, size_t axes) {
  Ints out;
  for (int64_t i = views.rank() - static_cast<int64_t>(axes); i < views.rank(); ++i)
    out.push_back(i);
  return out;
}

// Positions in the whole input, in the order of its memory or with the spatial axes turned around.
Tensor whole_positions(const Call& c, const Tensor& x, const Tensor& local) {
  const Ints dims = dims_of(x);
  int64_t area = 1;
  for (size_t i = 2; i < dims.size(); ++i) area *= dims[i];
  Tensor place = local;
  if (c.attr("storage_order", 0) == 1) {
    place = Tensor();
    int64_t row_major = area;
    int64_t column_major = 1;
    for (size_t i = 2; i < dims.size(); ++i) {
      row_major /= dims[i];
      const Tensor along =
          floor_mod(floor_div(local, number_int(local, row_major)), number_int(local, dims[i])) *
          number_int(local, column_major);
      place = place ? place + along : along;
      column_major *= dims[i];
    }
  }
  const Tensor batch = positions(c.context(), kInt64, dims[0], 0, x.rank());
  const Tensor channel = positions(c.context(), kInt64, dims[1], 1, x.rank());
  return place + (batch * number_int(batch, dims[1]) + channel) * number_int(batch, area);
}

Tensors import_max_pool(Call& c) {
  const Tensor& x = c.in(0);
  const Windows w = windows_attributes(c, sizes_in_space(c, x));
  const bool up = c.flag("ceil_mode", false);
  const Tensor best = max_pool(x, w.kernel, w.options, up);
  if (!c.wants(1)) return {best};
  return {best, whole_positions(c, x, max_pool_indices(x, w.kernel, w.options, up))};
}

Tensors import_average_pool(Call& c) {
  const Tensor& x = c.in(0);
  const Windows w = windows_attributes(c, sizes_in_space(c, x));
  return {avg_pool(x, w.kernel, w.options, c.flag("ceil_mode", false),
                   c.flag("count_include_pad", false))};
}

// (sum |x|^p)^(1/p).
Tensor norm(const Tensor& x, double p, const Ints& axes, bool keep) {
  const Tensor size = abs(x);
  if (p == 1) return sum(size, axes, keep);
  if (p == 2) return sqrt(sum(square(size), axes, keep));
  const Tensor total = sum(pow(size, number(size, p)), axes, keep);
  return pow(total, number(total, 1 / p));
}

double norm_order(const Call& c) {
  return c.version() < 2 ? static_cast<double>(c.real_attr("p", 2.0f))
                         : static_cast<double>(c.attr("p", 2));
}

Tensors import_lp_pool(Call& c) {
  const Tensor& x = c.in(0);
  const Ints spatial = spatial_of(c, x);
  const Windows w = windows_attributes(c, to_shape(spatial));
  const WindowOptions& o = w.options;
  const bool up = c.flag("ceil_mode", false);
  Ints before(2), after(2), counts;
  for (size_t i = 0; i < spatial.size(); ++i) {
    const int64_t size = spatial[i] + o.before[i] + o.after[i];
    counts.push_back(window_count(size, w.kernel[i], o.strides[i], o.dilations[i], up).value());
    if (up && (counts[i] - 1) * o.strides[i] >= spatial[i] + o.before[i]) --counts[i];
    c.check(counts[i] > 0, "no window fits axis ", i + 2);
    const int64_t reach = (counts[i] - 1) * o.strides[i] + (w.kernel[i] - 1) * o.dilations[i] + 1;
    before.push_back(o.before[i]);
    after.push_back(std::max(o.after[i], reach - spatial[i] - o.before[i]));
  }
  const Tensor padded = pad(x, to_shape(before), to_shape(after));
  const Tensor views = windows(padded, w.kernel, o.strides, o.dilations, to_shape(counts));
  return {norm(views, norm_order(c), kernel_axes(views, spatial.size()), false)};
}

Ints spatial_axes(const Call& c, const Tensor& x) {
  return kernel_axes(x, sizes_in_space(c, x).size());
}

Tensors import_global_average(Call& c) {
  return {mean(c.in(0), spatial_axes(c, c.in(0)), true)};
}
Tensors import_global_max(Call& c) {
  return {max(c.in(0), spatial_axes(c, c.in(0)), true)};
}
Tensors import_global_lp(Call& c) {
  return {norm(c.in(0), norm_order(c), spatial_axes(c, c.in(0)), true)};
}

constexpr int64_t kNow = kNewestOpset;

// clang-format off
constexpr Row kRows[] = {
    {"Conv",              1,  kNow, import_conv},
    {"ConvInteger",       10, kNow, import_conv_integer},
    {"QLinearConv",       10, kNow, import_qlinear_conv},
    {"ConvTranspose",     1,  kNow, import_conv_transpose},
    {"MaxPool",           1,  kNow, import_max_pool},
    {"AveragePool",       1,  kNow, import_average_pool},
    {"LpPool",            1,  kNow, import_lp_pool},
    {"GlobalAveragePool", 1,  kNow, import_global_average},
    {"GlobalMaxPool",     1,  kNow, import_global_max},
    {"GlobalLpPool",      1,  kNow, import_global_lp},
};
// clang-format on

}  // namespace

std::span<const Row> convolution_rows() {
  return kRows;
}

}  // namespace tiny::onnx
