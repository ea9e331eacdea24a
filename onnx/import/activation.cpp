// Activation functions.  What has no definition of its own in the tensor library is composed.
#include <cmath>

#include "base/error.h"
#include "onnx/import/functions.h"
#include "onnx/import/table.h"
#include "tensor/activation.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/movement.h"

namespace tiny::onnx {

namespace {

Tensor is_negative(const Tensor& x) {
  return less(x, number(x, 0.0));
}

Tensors import_leaky_relu(Call& c) {
  return {leaky_relu(c.in(0), c.real_attr("alpha", 0.01f))};
}

// Before version 7 a slope of one axis belongs to the channels.
Tensors import_prelu(Call& c) {
  const Tensor& x = c.in(0);
  Tensor slope = c.in(1);
  if (c.version() < 7 && slope.rank() == 1 && dim_of(slope, 0) > 1 && x.rank() > 1) {
    Ints shape(static_cast<size_t>(x.rank() - 1), 1);
    shape[0] = dim_of(slope, 0);
    slope = reshape(slope, to_shape(shape));
  }
  return {where(is_negative(x), x * slope, x)};
}

// scale * (exp(x / width) - 1) below 0.
Tensor exponential_unit(const Tensor& x, double scale, double width) {
  const Tensor low = minimum(x, number(x, 0.0));
  const Tensor e = exp(width == 1 ? low : low / number(x, width)) - number(x, 1.0);
  return where(is_negative(x), number(x, scale) * e, x);
}

Tensors import_elu(Call& c) {
  return {exponential_unit(c.in(0), c.real_attr("alpha", 1.0f), 1)};
}

Tensors import_celu(Call& c) {
  const float alpha = c.real_attr("alpha", 1.0f);
  return {exponential_unit(c.in(0), alpha, alpha)};
}

Tensors import_selu(Call& c) {
  const bool old = c.version() < 6;
  const float alpha = c.real_attr("alpha", old ? 1.6732f : 1.67326319217681884765625f);
  const float gamma = c.real_attr("gamma", old ? 1.0507f : 1.05070102214813232421875f);
  const Tensor& x = c.in(0);
  return {number(x, gamma) * exponential_unit(x, alpha, 1)};
}

Tensors import_hard_sigmoid(Call& c) {
  return {hard_sigmoid(c.in(0), c.real_attr("alpha", 0.2f), c.real_attr("beta", 0.5f))};
}

Tensor hard_swish(const Tensor& x) {
  return x * hard_sigmoid(x, 1.0 / 6, 0.5);
}

Tensor softsign(const Tensor& x) {
  return x / (number(x, 1.0) + abs(x));
}

Tensor mish(const Tensor& x) {
  return x * tanh(softplus(x));
}

Tensors import_swish(Call& c) {
  const Tensor& x = c.in(0);
  return {x * sigmoid(x * number(x, c.real_attr("alpha", 1.0f)))};
}

Tensors import_thresholded_relu(Call& c) {
  const Tensor& x = c.in(0);
  return {where(less(number(x, c.real_attr("alpha", 1.0f)), x), x, number(x, 0.0))};
}

Tensors import_shrink(Call& c) {
  const Tensor& x = c.in(0);
  const double lambda = c.real_attr("lambd", 0.5f);
  const Tensor bias = number(x, c.real_attr("bias", 0.0f));
  const Tensor low = less(x, number(x, -lambda));
  const Tensor high = less(number(x, lambda), x);
  return {where(low, x + bias, where(high, x - bias, number(x, 0.0)))};
}

Tensors import_gelu(Call& c) {
  const Tensor& x = c.in(0);
  const std::string approximate = c.text_attr("approximate", "none");
  c.check(approximate == "none" || approximate == "tanh", "the attribute approximate is \"",
          approximate, "\"");
  return {gelu(x, approximate == "none" ? GeluKind::Exact : GeluKind::Tanh)};
}

// ---- Dropout: a running model passes its input on.

Tensor all_true(const Tensor& x) {
  return full(x.context_ref(), kBool, x.shape(), 1);
}

Tensors import_dropout_test(Call& c) {
  if (!c.flag("is_test", false) && c.real_attr("ratio", 0.5f) != 0)
    c.unsupported("dropout while training (is_test = 0) is not supported");
  const Tensor& x = c.in(0);
  return {x, full(x.context_ref(), x.dtype(), x.shape(), 1)};
}

Tensors import_dropout_attribute(Call& c) {
  const Tensor& x = c.in(0);
  return {x, c.version() < 10 ? full(x.context_ref(), x.dtype(), x.shape(), 1) : all_true(x)};
}

Tensors import_dropout(Call& c) {
  const Tensor& x = c.in(0);
  const bool training = c.has(2) && c.integer(2) != 0;
  const double ratio = c.has(1) && training ? c.real(1) : 0.5;
  if (training && ratio != 0) c.unsupported("dropout while training is not supported");
  return {x, all_true(x)};
}

constexpr int64_t kNow = kNewestOpset;

// clang-format off
constexpr Row kRows[] = {
    {"Relu",            1,  kNow, nullptr, 0, relu},
    {"Sigmoid",         1,  kNow, nullptr, 0, sigmoid},
    {"Tanh",            1,  kNow, nullptr, 0, tanh},
    {"Softplus",        1,  kNow, nullptr, 0, softplus},
    {"Softsign",        1,  kNow, nullptr, 0, softsign},
    {"HardSwish",       14, kNow, nullptr, 0, hard_swish},
    {"Mish",            18, kNow, nullptr, 0, mish},
    {"LeakyRelu",       1,  kNow, import_leaky_relu},
    {"PRelu",           1,  kNow, import_prelu},
    {"Elu",             1,  kNow, import_elu},
    {"Celu",            12, kNow, import_celu},
    {"Selu",            1,  kNow, import_selu},
    {"HardSigmoid",     1,  kNow, import_hard_sigmoid},
    {"Swish",           24, kNow, import_swish},
    {"ThresholdedRelu", 10, kNow, import_thresholded_relu},
    {"Shrink",          9,  kNow, import_shrink},
    {"Gelu",            20, kNow, import_gelu},
    {"Dropout",         1,  6,    import_dropout_test},
    {"Dropout",         7,  11,   import_dropout_attribute},
    {"Dropout",         12, kNow, import_dropout, operand(1) | operand(2)},
};
// clang-format on

}  // namespace

std::span<const Row> activation_rows() {
  return kRows;
}

}  // namespace tiny::onnx
