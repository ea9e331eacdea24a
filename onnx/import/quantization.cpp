// Numbers as small integers with a scale and a zero point.
#include "base/error.h"
#include "onnx/import/functions.h"
#include "onnx/import/table.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"

namespace tiny::onnx {

namespace {

// A scale or zero point, spread over x: one for all, one per element of an axis, or one per block
// of elements along it.
Tensor spread(const Call& c, const Tensor& parameter, const Tensor& x) {
  if (parameter.rank() == 0) return parameter;
  const int64_t block = c.attr("block_size", 0);
  const int64_t axis = x.rank() == 0 ? 0
                                     : axis_of(c.attr("axis", 1), std::max<int64_t>(x.rank(), 2)) %
                                           std::max<int64_t>(x.rank(), 1);
  if (parameter.rank() == 1 && block == 0) {
    if (dim_of(parameter, 0) == 1) return reshape(parameter, Shape());
    c.check(dim_of(parameter, 0) == dim_of(x, axis), "a scale of shape ", parameter.shape(),
            " for axis ", axis, " of shape ", x.shape());
    Ints shape(static_cast<size_t>(x.rank()), 1);
    shape[static_cast<size_t>(axis)] = dim_of(parameter, 0);
    return reshape(parameter, to_shape(shape));
  }
  c.check(block > 0 && parameter.rank() == x.rank(), "a scale of shape ", parameter.shape(),
          " with block_size = ", block);
  Ints wide = dims_of(parameter);
  wide.insert(wide.begin() + axis + 1, block);
  Ints joined = dims_of(parameter);
  joined[static_cast<size_t>(axis)] *= block;
  const Tensor repeated = parameter.with(
      make_reshape(make_expand(make_reshape(parameter.node(),
                                            [&] {
                                              Shape s = parameter.shape();
                                              s.insert(s.begin() + axis + 1, tiny::Dim(1));
                                              return s;
                                            }()),
                               to_shape(wide)),
                   to_shape(joined)));
  c.check(joined[static_cast<size_t>(axis)] >= dim_of(x, axis), "too few blocks for axis ", axis);
  return slice_axis(repeated, axis, 0, dim_of(x, axis));
}

Tensors import_quantize(Call& c) {
  const Tensor& x = c.in(0);
  const Tensor scale = spread(c, c.in(1), x);
  const DType to = c.has(2) ? c.in(2).dtype() : c.dtype_attr("output_dtype", kUInt8);
  c.check(to.is_int(), "the result would be of type ", tiny::to_string(to));
  const DType precision = c.dtype_attr("precision", c.in(1).dtype());
  const Tensor scaled = cast(x, precision) / cast(scale, precision);
  return {quantized(scaled, c.has(2) ? spread(c, c.in(2), x) : Tensor(), to)};
}

Tensors import_dequantize(Call& c) {
  const Tensor& x = c.in(0);
  const DType to = c.dtype_attr("output_dtype", c.in(1).dtype());
  Tensor centered = cast(x, kInt32);
  if (c.has(2)) centered = centered - cast(spread(c, c.in(2), x), kInt32);
  // The product is rounded once, in float32 at least.
  const DType wide = to.bits() < 32 ? kFloat32 : to;
  return {cast(cast(centered, wide) * cast(spread(c, c.in(1), x), wide), to)};
}

// The range that holds 0 and every element, on the 256 steps of uint8.
Tensors import_dynamic_quantize(Call& c) {
  const Tensor& x = c.in(0);
  Ints axes;
  for (int64_t i = 0; i < x.rank(); ++i) axes.push_back(i);
  const Tensor zero = full(c.context(), x.dtype(), {}, 0);
  const Tensor high = maximum(max(x, axes), zero);
  const Tensor low = minimum(min(x, axes), zero);
  const Tensor range = (high - low) / number(high, 255);
  // All zeros: any scale will do.
  const Tensor scale = where(equal(range, zero), number(range, 1), range);
  const Tensor point = quantized(neg(low) / scale, Tensor(), kUInt8);
  return {quantized(x / scale, point, kUInt8), range, point};
}

// ---- Products.

Tensor requantized(const Tensor& total, const Tensor& a_scale, const Tensor& b_scale,
                   const Tensor& y_scale, const Tensor& zero, const Tensor& bias = Tensor()) {
  const Tensor sum = bias ? total + bias : total;
  const Tensor factor = cast(a_scale, kFloat32) * cast(b_scale, kFloat32) / cast(y_scale, kFloat32);
  return quantized(cast(sum, kFloat32) * factor, zero, zero.dtype());
}

// A parameter per row of a, as a column; per column of b it is a row already.
Tensor beside(const Tensor& parameter, bool is_row) {
  if (parameter.rank() != 1) return parameter;
  if (dim_of(parameter, 0) == 1) return reshape(parameter, Shape());
  return is_row ? unsqueeze(parameter, {1}) : parameter;
}

Tensors import_qlinear_matmul(Call& c) {
  const Tensor a = cast(c.in(0), kInt32) - cast(beside(c.in(2), true), kInt32);
  const Tensor b = cast(c.in(3), kInt32) - cast(beside(c.in(5), false), kInt32);
  return {requantized(matmul(a, b), beside(c.in(1), true), beside(c.in(4), false),
                      beside(c.in(6), true), beside(c.in(7), true))};
}

constexpr int64_t kNow = kNewestOpset;

// clang-format off
constexpr Row kRows[] = {
    {"QuantizeLinear",        10, kNow, import_quantize},
    {"DequantizeLinear",      10, kNow, import_dequantize},
    {"DynamicQuantizeLinear", 11, kNow, import_dynamic_quantize},
    {"QLinearMatMul",         10, kNow, import_qlinear_matmul},
};
// clang-format on

}  // namespace

std::span<const Row> quantization_rows() {
  return kRows;
}

}  // namespace tiny::onnx
