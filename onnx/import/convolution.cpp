// Convolutions and pools.
#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "base/error.h"
#include "onnx/import/functions.h"
#include "onnx/import/table.h"
#include "onnx/import/window.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"

namespace tiny::onnx {

namespace {

Ints spatial_of(const Call& c, const Tensor& x) {
  c.check(x.rank() >= 3, "it takes a batch, channels and spatial axes; got shape ",
          list_text(dims_of(x)));
  const Ints dims = dims_of(x);
  return {dims.begin() + 2, dims.end()};
}

Tensor with_bias(const Call& c, const Tensor& y, size_t bias) {
  if (!c.has(bias)) return y;
  c.check(dims_of(c.in(bias)) == Ints{dim_of(y, 1)}, "a bias of shape ",
          list_text(dims_of(c.in(bias))), " for ", dim_of(y, 1), " channels");
  Ints shape(static_cast<size_t>(y.rank() - 1), 1);
  shape[0] = dim_of(y, 1);
  return y + reshape(c.in(bias), to_shape(shape));
}

// ---- Convolutions.

Tensor convolution(const Call& c, const Tensor& x, const Tensor& weights) {
  const Ints spatial = spatial_of(c, x);
  c.check(weights.rank() == x.rank(), "weights with ", weights.rank(), " axes for an input with ",
          x.rank());
  const Windows w = windows_of(c, spatial, spatial_of(c, weights));
  return convolved(padded_for(x, w), weights, c.attr("group", 1), w);
}

Tensors import_conv(Call& c) {
  return {with_bias(c, convolution(c, c.in(0), c.in(1)), 2)};
}

// The input, or the weights per output channel, less their zero point.
Tensor centered(const Call& c, size_t i, size_t zero) {
  const Tensor wide = cast(c.in(i), kInt32);
  if (!c.has(zero)) return wide;
  const Tensor point = cast(c.in(zero), kInt32);
  if (point.rank() == 0 || dim_of(point, 0) == 1) return wide - reshape(point, {});
  Ints shape(static_cast<size_t>(wide.rank()), 1);
  shape[0] = dim_of(point, 0);
  return wide - reshape(point, to_shape(shape));
}

Tensors import_conv_integer(Call& c) {
  return {convolution(c, centered(c, 0, 2), centered(c, 1, 3))};
}

// Zeros between the elements of the spatial axes.
Tensor spread(const Tensor& x, const Ints& stride) {
  Tensor out = x;
  for (size_t i = 0; i < stride.size(); ++i) {
    if (stride[i] == 1) continue;
    const auto axis = static_cast<int64_t>(i) + 2;
    const int64_t n = dim_of(out, axis);
    Ints shape = dims_of(out);
    Tensor apart = unsqueeze(out, {axis + 1});
    Ints none(static_cast<size_t>(apart.rank()), 0), more = none;
    more[i + 3] = stride[i] - 1;
    apart = pad(apart, to_shape(none), to_shape(more));
    shape[i + 2] = checked_mul(n, stride[i], "a stride");
    out = slice_axis(reshape(apart, to_shape(shape)), axis, 0, (n - 1) * stride[i] + 1);
  }
  return out;
}

// Pads and output sizes of a transposed convolution; `pads` may be chosen by the output's shape.
struct Transposed {
  Ints stride, dilation, before, after, more;
};
Transposed transposed_of(const Call& c, const Ints& spatial, const Ints& kernel) {
  const size_t axes = spatial.size();
  const auto listed = [&](const char* name, size_t count, int64_t fallback, int64_t least) {
    const Ints values = c.ints_attr(name, Ints(count, fallback));
    c.check(values.size() == count, "the attribute ", name, " has ", values.size(), " values");
    for (int64_t v : values)
      c.check(v >= least && v < (int64_t{1} << 31), "the attribute ", name, " = ",
              list_text(values));
    return values;
  };
  Transposed t;
  t.stride = listed("strides", axes, 1, 1);
  t.dilation = listed("dilations", axes, 1, 1);
  t.more = listed("output_padding", axes, 0, 0);
  const Ints pads = listed("pads", 2 * axes, 0, 0);
  t.before.assign(pads.begin(), pads.begin() + static_cast<int64_t>(axes));
  t.after.assign(pads.begin() + static_cast<int64_t>(axes), pads.end());
  const std::string mode = c.text_attr("auto_pad", "NOTSET");
  const bool same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
  c.check(same || mode == "VALID" || mode == "NOTSET", "the attribute auto_pad is \"", mode, "\"");
  if (mode == "VALID") t.before = t.after = Ints(axes, 0);
  auto shape = c.ints_attr("output_shape");
  if (shape && shape->size() > axes)
    shape->erase(shape->begin(), shape->end() - static_cast<int64_t>(axes));
  if (!shape && !same) return t;
  for (size_t i = 0; i < axes; ++i) {
    const int64_t wanted = shape ? shape->at(i) : checked_mul(spatial[i], t.stride[i], "a stride");
    const int64_t full =
        (spatial[i] - 1) * t.stride[i] + t.more[i] + (kernel[i] - 1) * t.dilation[i] + 1;
    const int64_t total = full - wanted;
    t.before[i] = mode == "SAME_UPPER" ? floor_div(total, 2) : total - floor_div(total, 2);
    if (total < 0) t.before[i] = std::max<int64_t>(0, t.before[i]);
    t.after[i] = total - t.before[i];
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
  const int64_t groups = c.attr("group", 1);
  const Ints shape = dims_of(weights);
  c.check(groups > 0 && shape[0] == dim_of(x, 1) && shape[0] % groups == 0, "weights of shape ",
          list_text(shape), " for ", dim_of(x, 1), " channels in ", groups, " groups");
  const Transposed t = transposed_of(c, spatial, kernel);
  // The weights mirrored, [C, M / g, ..] as [M, C / g, ..].
  Ints mirrored, apart{groups, shape[0] / groups, shape[1]}, order{0, 2, 1};
  for (size_t i = 0; i < kernel.size(); ++i) {
    mirrored.push_back(static_cast<int64_t>(i) + 2);
    apart.push_back(kernel[i]);
    order.push_back(static_cast<int64_t>(i) + 3);
  }
  Ints turned{shape[1] * groups, shape[0] / groups};
  turned.insert(turned.end(), kernel.begin(), kernel.end());
  const UOp grouped =
      make_permute(make_reshape(flip(weights, mirrored).node(), to_shape(apart)), order);
  const Tensor w = weights.with(make_reshape(grouped, to_shape(turned)));
  Windows slide;
  slide.kernel = kernel;
  slide.stride = Ints(kernel.size(), 1);
  slide.dilation = t.dilation;
  Ints before{0, 0}, after{0, 0};
  for (size_t i = 0; i < kernel.size(); ++i) {
    const int64_t reach = (kernel[i] - 1) * t.dilation[i];
    before.push_back(reach - t.before[i]);
    after.push_back(reach - t.after[i] + t.more[i]);
    const int64_t size = (spatial[i] - 1) * t.stride[i] + 1 + before.back() + after.back();
    c.check(size > reach, "nothing is left of axis ", i + 2);
    slide.count.push_back(size - reach);
  }
  const Tensor ready = pad(spread(x, t.stride), to_shape(before), to_shape(after));
  return {with_bias(c, convolved(ready, w, groups, slide), 2)};
}

// ---- Pools.

Ints kernel_axes(const Tensor& views, size_t axes) {
  Ints out;
  for (int64_t i = views.rank() - static_cast<int64_t>(axes); i < views.rank(); ++i)
    out.push_back(i);
  return out;
}

// Whether each element of the padded input is one of x's, [1, 1, ..].
Tensor inside(const Tensor& x, const Windows& w, bool count_padding) {
  Ints shape = dims_of(x);
  shape[0] = shape[1] = 1;
  Windows counted = w;
  if (count_padding) {
    for (size_t i = 0; i < w.kernel.size(); ++i) shape[i + 2] += w.before[i] + w.after[i];
    counted.before = counted.after = Ints(w.kernel.size(), 0);
  }
  return padded_for(full(x.context_ref(), kBool, to_shape(shape), 1), counted);
}

bool is_padded(const Windows& w) {
  for (const Ints* list : {&w.before, &w.after, &w.extra})
    for (int64_t n : *list)
      if (n != 0) return true;
  return false;
}

// Where every window has its maximum, as a position in the whole input.
Tensor max_positions(const Call& c, const Tensor& x, const Tensor& views, const Tensor& best,
                     const Windows& w) {
  const Ints dims = dims_of(x);
  const size_t axes = w.kernel.size();
  const bool column_major = c.attr("storage_order", 0) == 1;
  int64_t area = 1;
  Tensor place;
  for (size_t n = 0; n < axes; ++n) {
    const size_t i = column_major ? n : axes - 1 - n;
    const Tensor along =
        positions(c.context(), kInt64, dims[i + 2], static_cast<int64_t>(i) + 2, x.rank());
    const Tensor part = along * number_int(along, area);
    place = place ? place + part : part;
    area *= dims[i + 2];
  }
  const Tensor spots = sliding(padded_for(place, w), w);
  const Tensor real = sliding(inside(x, w, false), w);
  Tensor top = best;
  for (size_t i = 0; i < axes; ++i) top = unsqueeze(top, {top.rank()});
  const Tensor hit = bit_and(equal(views, top), real);
  const Tensor local =
      min(where(hit, spots, number_int(spots, area)), kernel_axes(views, axes), false);
  const Tensor batch = positions(c.context(), kInt64, dims[0], 0, x.rank());
  const Tensor channel = positions(c.context(), kInt64, dims[1], 1, x.rank());
  return local + (batch * number_int(batch, dims[1]) + channel) * number_int(batch, area);
}

Tensors import_max_pool(Call& c) {
  const Tensor& x = c.in(0);
  const Windows w = windows_of(c, spatial_of(c, x));
  Tensor padded = padded_for(x, w);
  if (is_padded(w)) {
    const Tensor lowest = full_bits(c.context(), x.dtype(), {}, lowest_bits(x.dtype()));
    padded = where(inside(x, w, false), padded, lowest);
  }
  const Tensor views = sliding(padded, w);
  const Tensor best = max(views, kernel_axes(views, w.kernel.size()), false);
  if (!c.wants(1)) return {best};
  return {best, max_positions(c, x, views, best, w)};
}

Tensors import_average_pool(Call& c) {
  const Tensor& x = c.in(0);
  const Windows w = windows_of(c, spatial_of(c, x));
  const Tensor wide = x.dtype().bits() < 32 ? cast(x, kFloat32) : x;
  const Tensor views = sliding(padded_for(wide, w), w);
  const Ints axes = kernel_axes(views, w.kernel.size());
  const Tensor total = sum(views, axes, false);
  if (!is_padded(w)) {
    const auto n = static_cast<double>(reduced_count(views, axes).value());
    return {cast(total / number(total, n), x.dtype())};
  }
  const Tensor counted =
      cast(sliding(inside(x, w, c.flag("count_include_pad", false)), w), total.dtype());
  return {cast(total / sum(counted, axes, false), x.dtype())};
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
  const Windows w = windows_of(c, spatial_of(c, x));
  const Tensor views = sliding(padded_for(x, w), w);
  return {norm(views, norm_order(c), kernel_axes(views, w.kernel.size()), false)};
}

Ints spatial_axes(const Call& c, const Tensor& x) {
  return kernel_axes(x, spatial_of(c, x).size());
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
