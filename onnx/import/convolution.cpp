// Convolutions and pools.
#include "base/error.h"
#include "onnx/import/functions.h"
#include "onnx/import/table.h"
#include "tensor/normalization.h"
#include "tensor/quantized_conv.h"
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

constexpr Named<Padding> kPaddings[] = {{"NOTSET", Padding::Explicit},
                                        {"SAME_UPPER", Padding::SameUpper},
                                        {"SAME_LOWER", Padding::SameLower},
                                        {"VALID", Padding::Valid}};

// strides, dilations, pads and auto_pad, which are the same for all; `kernel` is the weight's.
Window window_attributes(const Call& c, size_t axes, const Ints& kernel) {
  Window w;
  w.kernel = kernel;
  w.strides = listed(c, "strides", axes, 1, 1);
  w.dilations = listed(c, "dilations", axes, 1, 1);
  const Ints pads = listed(c, "pads", 2 * axes, 0, 0);
  w.before.assign(pads.begin(), pads.begin() + static_cast<int64_t>(axes));
  w.after.assign(pads.begin() + static_cast<int64_t>(axes), pads.end());
  w.padding = named_attr<Padding>(c, "auto_pad", "NOTSET", kPaddings);
  return w;
}

}  // namespace

Window convolution_window(const Call& c, const Tensor& x, const Tensor& weights) {
  const size_t axes = sizes_in_space(c, x).size();
  c.check(weights.rank() == x.rank(), "weights with ", weights.rank(), " axes for an input with ",
          x.rank());
  const Ints kernel = spatial_of(c, weights);
  const Ints said = c.ints_attr("kernel_shape", kernel);
  c.check(said == kernel, "the attribute kernel_shape is ", list_text(said), ", the weights have ",
          list_text(kernel));
  return window_attributes(c, axes, kernel).with_groups(c.attr("group", 1));
}

Window pool_window(const Call& c, const Tensor& x) {
  const size_t axes = sizes_in_space(c, x).size();
  const Ints kernel = c.ints_attr("kernel_shape", Ints());
  c.check(kernel.size() == axes, "the attribute kernel_shape has ", kernel.size(), " values for ",
          axes, " spatial axes");
  for (int64_t k : kernel) c.check(k > 0 && k < kSizeMax, "a kernel ", list_text(kernel));
  Window w = window_attributes(c, axes, kernel);
  w.ceil_mode = c.flag("ceil_mode", false);
  return w;
}

namespace {

// ---- Convolutions.

Tensors import_conv(Call& c) {
  return {conv_of(c)};
}

// Inputs: x, the weights, their zero points.
Tensors import_conv_integer(Call& c) {
  return {conv_integer(c.in(0), c.in_or(2, Tensor()), c.in(1), c.in_or(3, Tensor()), Tensor(),
                       convolution_window(c, c.in(0), c.in(1)))};
}

// Inputs: x, its scale and zero point; the weights and theirs; the result's; a bias of int32.
Tensors import_qlinear_conv(Call& c) {
  const auto numbers = [&](size_t i) {
    return Quantized{c.in(i), c.in(i + 1), c.in_or(i + 2, Tensor())};
  };
  return {quantized_conv(numbers(0), numbers(3), c.in_or(8, Tensor()), c.in(6), c.in(7),
                         convolution_window(c, c.in(0), c.in(3)))};
}

Tensors import_conv_transpose(Call& c) {
  const Tensor& x = c.in(0);
  Window w = convolution_window(c, x, c.in(1));
  const size_t axes = w.kernel.size();
  w.output_padding = listed(c, "output_padding", axes, 0, 0);
  auto shape = c.ints_attr("output_shape");
  // Some exporters list the batch and the channels too.
  if (shape && shape->size() > axes)
    shape->erase(shape->begin(), shape->end() - static_cast<int64_t>(axes));
  if (shape) {
    c.check(shape->size() == axes, "the attribute output_shape has too few values");
    for (int64_t size : *shape)
      c.check(size > 0 && size < kSizeMax, "the attribute output_shape = ", list_text(*shape));
    w.output_size = *shape;
  }
  return {conv_transpose(x, c.in(1), c.in_or(2, Tensor()), w)};
}

// ---- Pools.

Tensors import_max_pool(Call& c) {
  const Tensor& x = c.in(0);
  const Window w = pool_window(c, x);
  const bool column_major = c.attr("storage_order", 0) == 1;
  if (!c.wants(1)) return {max_pool(x, w)};
  return {max_pool(x, w), max_pool_positions(x, w, column_major)};
}

Tensors import_average_pool(Call& c) {
  Window w = pool_window(c, c.in(0));
  w.count_include_pad = c.flag("count_include_pad", false);
  return {avg_pool(c.in(0), w)};
}

double norm_order(const Call& c) {
  return c.version() < 2 ? static_cast<double>(c.real_attr("p", 2.0f))
                         : static_cast<double>(c.attr("p", 2));
}

Tensors import_lp_pool(Call& c) {
  return {lp_pool(c.in(0), pool_window(c, c.in(0)), norm_order(c))};
}

Ints spatial_axes(const Call& c, const Tensor& x) {
  Ints axes;
  for (size_t i = 0; i < sizes_in_space(c, x).size(); ++i)
    axes.push_back(static_cast<int64_t>(2 + i));
  return axes;
}

Tensors import_global_average(Call& c) {
  return {mean(c.in(0), spatial_axes(c, c.in(0)), true)};
}
Tensors import_global_max(Call& c) {
  return {max(c.in(0), spatial_axes(c, c.in(0)), true)};
}
Tensors import_global_lp(Call& c) {
  return {lp_norm(c.in(0), norm_order(c), spatial_axes(c, c.in(0)), true)};
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

Tensor conv_of(const Call& c) {
  return conv(c.in(0), c.in(1), c.in_or(2, Tensor()), convolution_window(c, c.in(0), c.in(1)));
}

std::span<const Row> convolution_rows() {
  return kRows;
}

}  // namespace tiny::onnx
