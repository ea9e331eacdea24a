// Operators of onnxruntime's own (com.microsoft): what its optimiser and quantiser write in the
// place of several of the standard's.
#include "base/error.h"
#include "onnx/import/functions.h"
#include "onnx/import/table.h"
#include "tensor/activation.h"
#include "tensor/elementwise.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/normalization.h"
#include "tensor/quantization.h"
#include "tensor/reduce.h"

namespace tiny::onnx {

namespace {

// ---- Activations.

Tensor biased(const Call& c, size_t bias) {
  return c.has(bias) ? c.in(0) + c.in(bias) : c.in(0);
}

Tensors import_gelu(Call& c) {
  return {gelu(c.in(0))};
}

Tensors import_bias_gelu(Call& c) {
  return {gelu(biased(c, 1))};
}

Tensors import_fast_gelu(Call& c) {
  return {gelu(biased(c, 1), GeluKind::Tanh)};
}

Tensors import_quick_gelu(Call& c) {
  return {swish(c.in(0), static_cast<double>(c.real_attr("alpha", 1.702f)))};
}

// What a fused operator does last; `parameter` gives the function's numbers, with their defaults.
template <class Parameter>
Tensor activated(const Call& c, const Tensor& x, const Parameter& parameter) {
  const std::string name = c.text_attr("activation", "");
  if (name.empty()) return x;
  if (name == "Relu") return relu(x);
  if (name == "Sigmoid") return sigmoid(x);
  if (name == "Tanh") return tanh(x);
  if (name == "Softplus") return softplus(x);
  if (name == "Softsign") return softsign(x);
  if (name == "LeakyRelu") return leaky_relu(x, parameter(0, 0.01));
  if (name == "Elu") return elu(x, parameter(0, 1));
  if (name == "ThresholdedRelu") return thresholded_relu(x, parameter(0, 1));
  if (name == "HardSigmoid") return hard_sigmoid(x, parameter(0, 0.2), parameter(1, 0.5));
  if (name == "Clip")
    return clip(x, number(c, parameter(0, -3.402823466e+38)),
                number(c, parameter(1, 3.402823466e+38)));
  c.unsupported("the activation \"", name, "\"");
}

// Input 3 is added to the convolution.
Tensors activated_conv(const Call& c, Tensor y) {
  if (c.has(3)) y = y + c.in(3);
  const std::vector<float> numbers = c.floats_attr("activation_params");
  return {activated(c, y, [&](size_t i, double fallback) {
    return i < numbers.size() ? static_cast<double>(numbers[i]) : fallback;
  })};
}

Tensors import_fused_conv(Call& c) {
  return activated_conv(c, conv_of(c));
}

// The same with the channels last.
Tensors import_nhwc_fused_conv(Call& c) {
  const int64_t last = c.in(0).rank() - 1;
  const Tensor x = move_axis(c.in(0), last, 1);
  const Tensor y = conv(x, c.in(1), c.in_or(2, Tensor()), convolution_window(c, x, c.in(1)));
  return activated_conv(c, move_axis(y, 1, last));
}

Tensors import_fused_gemm(Call& c) {
  return {activated(c, gemm_of(c), [&](size_t i, double fallback) {
    return static_cast<double>(
        c.real_attr(i == 0 ? "activation_alpha" : "activation_beta", static_cast<float>(fallback)));
  })};
}

// ---- Normalizations of a sum.

// Outputs: the result, the statistics, and the sum that is normalized.
Tensors import_skip_layer_normalization(Call& c) {
  const Tensor sum = c.has(4) ? c.in(0) + c.in(1) + c.in(4) : c.in(0) + c.in(1);
  const StagedLayerNorm made = layer_norm_staged(
      sum, c.in(2), c.in_or(3, Tensor()), -1, static_cast<double>(c.real_attr("epsilon", 1e-12f)));
  return {made.y, made.mean, made.inverse_deviation, sum};
}

Tensors import_skip_simplified_layer_normalization(Call& c) {
  const Tensor sum = c.has(3) ? c.in(0) + c.in(1) + c.in(3) : c.in(0) + c.in(1);
  return {rms_norm_staged(sum, c.in(2), -1, static_cast<double>(c.real_attr("epsilon", 1e-12f))),
          Tensor(), Tensor(), sum};
}

// ---- Products.

// The axis of rows or columns stands before the batch, and goes behind it; then the last two change
// their places.
Tensor factor(const Call& c, size_t input, const char* is_batch_last, const char* is_transposed) {
  Tensor x = c.in(input);
  if (x.rank() < 2) return x;
  if (c.flag(is_batch_last, false)) x = move_axis(x, 0, x.rank() - 2);
  return c.flag(is_transposed, false) ? transpose(x, -2, -1) : x;
}

Tensors import_fused_matmul(Call& c) {
  const Tensor product =
      matmul(factor(c, 0, "transBatchA", "transA"), factor(c, 1, "transBatchB", "transB"));
  const double alpha = static_cast<double>(c.real_attr("alpha", 1));
  return {alpha == 1 ? product : product * number(c, alpha)};
}

Tensors import_fused_matmul_activation(Call& c) {
  c.pass_over({"activation_axis", "activation_gamma"});  // of functions that are refused
  return {activated(c, import_fused_matmul(c)[0], [&](size_t i, double fallback) {
    return static_cast<double>(
        c.real_attr(i == 0 ? "activation_alpha" : "activation_beta", static_cast<float>(fallback)));
  })};
}

// Inputs: a and b, a bias.
Tensors import_gemm_fast_gelu(Call& c) {
  const Tensor product = matmul(c.in(0), c.in(1));
  return {gelu(c.has(2) ? product + c.in(2) : product, GeluKind::Tanh)};
}

Tensor scaled_product(const Call& c, const Quantized& a, const Quantized& b, size_t bias) {
  const Tensor total = matmul_integer(a.values, a.zero, b.values, b.zero);
  const Tensor y = cast(total, b.scale.dtype()) * (a.scale * b.scale);
  return c.has(bias) ? y + c.in(bias) : y;
}

// a, b, b's scale and zero point, a bias.
Tensors import_dynamic_quantize_matmul(Call& c) {
  return {scaled_product(c, quantize_dynamically(c.in(0)), {c.in(1), c.in(2), c.in_or(3, Tensor())},
                         4)};
}

// a and b, their scales, their zero points, a bias.
Tensors import_matmul_integer_to_float(Call& c) {
  const auto rows = [&](size_t i) {
    const Tensor t = c.in_or(i, Tensor());
    return t && t.rank() == 1 && !t.shape()[0].is(1) ? unsqueeze(t, {1}) : t;
  };
  return {
      scaled_product(c, {c.in(0), rows(2), rows(4)}, {c.in(1), c.in(3), c.in_or(5, Tensor())}, 6)};
}

// clang-format off
constexpr Row kRows[] = {
    {"Gelu",                   1, 1, import_gelu, 0, nullptr, kContributed},
    {"BiasGelu",               1, 1, import_bias_gelu, 0, nullptr, kContributed},
    {"FastGelu",               1, 1, import_fast_gelu, 0, nullptr, kContributed},
    {"QuickGelu",              1, 1, import_quick_gelu, 0, nullptr, kContributed},
    {"FusedConv",              1, 1, import_fused_conv, 0, nullptr, kContributed},
    {"FusedGemm",              1, 1, import_fused_gemm, 0, nullptr, kContributed},
    {"FusedMatMul",            1, 1, import_fused_matmul, 0, nullptr, kContributed},
    {"TransposeMatMul",        1, 1, import_fused_matmul, 0, nullptr, kContributed},
    {"FusedMatMulActivation",  1, 1, import_fused_matmul_activation, 0, nullptr, kContributed},
    {"GemmFastGelu",           1, 1, import_gemm_fast_gelu, 0, nullptr, kContributed},
    {"NhwcFusedConv",          1, 1, import_nhwc_fused_conv, 0, nullptr, kContributed},
    {"DynamicQuantizeMatMul",  1, 1, import_dynamic_quantize_matmul, 0, nullptr, kContributed},
    {"MatMulIntegerToFloat",   1, 1, import_matmul_integer_to_float, 0, nullptr, kContributed},
    {"SkipLayerNormalization", 1, 1, import_skip_layer_normalization, 0, nullptr, kContributed},
    {"SkipSimplifiedLayerNormalization", 1, 1, import_skip_simplified_layer_normalization, 0,
     nullptr, kContributed},
};
// clang-format on

}  // namespace

std::span<const Row> contributed_rows() {
  return kRows;
}

}  // namespace tiny::onnx
