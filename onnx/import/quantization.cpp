// Numbers as small integers with a scale and a zero point.
#include "tensor/quantization.h"

#include <algorithm>

#include "base/error.h"
#include "onnx/import/functions.h"
#include "onnx/import/narrow.h"
#include "onnx/import/table.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"

namespace tiny::onnx {

namespace {

constexpr int32_t kFloat4Type = 23;

// Inputs 1 and 2.
QuantizationParameters parameters_of(const Call& c) {
  QuantizationParameters p{c.in(1), c.in_or(2, Tensor()), 0, c.attr("block_size", 0)};
  if (p.scale.rank() == 0) return p;
  // The attribute is 1 where it is left out, for operands of one axis too.
  const int64_t rank = c.in(0).rank();
  p.axis = axis_of(c.attr("axis", 1), std::max<int64_t>(rank, 2)) % std::max<int64_t>(rank, 1);
  return p;
}

// To integers of few bits, at the ends of what those hold, or to floats.
Tensors quantized_narrow(Call& c, const TensorTypeInfo& type, DType precision) {
  QuantizationParameters p = parameters_of(c);
  c.set_carried(0, type.number);
  if (type.number == kFloat4Type || type.bits == 8) {
    // The zero point of floats is 0: all that it does is to take a zero's sign.
    const Tensor scaled = over_scale(c.in(0), p, precision);
    return {narrowed(c, p.zero ? scaled + number(scaled, 0) : scaled, type.number)};
  }
  const bool has_sign = carrier_of(type) == kInt8;
  const int64_t steps = int64_t{1} << type.bits;
  const int64_t low = has_sign ? -steps / 2 : 0;
  if (p.zero) p.zero = cast(p.zero, kInt32);
  const Tensor whole = quantize(c.in(0), p, kInt32, precision);
  const Tensor inside =
      minimum(maximum(whole, number_int(whole, low)), number_int(whole, low + steps - 1));
  return {cast(inside, carrier_of(type))};
}

Tensors import_quantize(Call& c) {
  c.pass_over({"saturate", "output_dtype"});  // of 8-bit floats; where a zero point says it
  const int64_t said = c.has(2) ? c.carried(2) : c.type_attr("output_dtype", 0);
  const DType precision = c.dtype_attr("precision", c.in(1).dtype());
  const TensorTypeInfo* narrow = tensor_type(said);
  if (narrow && is_carried(*narrow)) return quantized_narrow(c, *narrow, precision);
  const DType to = c.has(2) ? c.in(2).dtype() : c.dtype_attr("output_dtype", kUInt8);
  return {quantize(c.in(0), parameters_of(c), to, precision)};
}

Tensors import_dequantize(Call& c) {
  QuantizationParameters p = parameters_of(c);
  if (p.zero) p.zero = widened(p.zero, c.carried(2));
  return {
      dequantize(widened(c.in(0), c.carried(0)), p, c.dtype_attr("output_dtype", c.in(1).dtype()))};
}

Tensors import_dynamic_quantize(Call& c) {
  const Quantized made = quantize_dynamically(c.in(0));
  return {made.values, made.scale, made.zero};
}

Tensors import_qlinear_matmul(Call& c) {
  return {
      quantized_matmul({c.in(0), c.in(1), c.in(2)}, {c.in(3), c.in(4), c.in(5)}, c.in(6), c.in(7))};
}

constexpr int64_t kNow = kNewestOpset;

// clang-format off
constexpr Row kRows[] = {
    {"QuantizeLinear",        10, kNow, import_quantize},
    {"DequantizeLinear",      10, kNow, import_dequantize},
    {"DynamicQuantizeLinear", 11, kNow, import_dynamic_quantize},
    {"QLinearMatMul",         10, kNow, import_qlinear_matmul},
    {"QuantizeLinear",        1,  1,    import_quantize, 0, nullptr, kContributed},
    {"DequantizeLinear",      1,  1,    import_dequantize, 0, nullptr, kContributed},
};
// clang-format on

}  // namespace

std::span<const Row> quantization_rows() {
  return kRows;
}

}  // namespace tiny::onnx
