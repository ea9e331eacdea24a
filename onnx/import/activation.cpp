// Activation functions.
#include "tensor/activation.h"

#include "base/error.h"
#include "onnx/import/functions.h"
#include "onnx/import/table.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/movement.h"

namespace tiny::onnx {

namespace {

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
  return {prelu(x, slope)};
}

Tensors import_elu(Call& c) {
  return {exponential_unit(c.in(0), c.real_attr("alpha", 1.0f), 1)};
}

Tensors import_celu(Call& c) {
  return {celu(c.in(0), c.real_attr("alpha", 1.0f))};
}

Tensors import_selu(Call& c) {
  const bool old = c.version() < 6;
  const float alpha = c.real_attr("alpha", old ? 1.6732f : 1.67326319217681884765625f);
  const float gamma = c.real_attr("gamma", old ? 1.0507f : 1.05070102214813232421875f);
  return {selu(c.in(0), alpha, gamma)};
}

Tensors import_hard_sigmoid(Call& c) {
  return {hard_sigmoid(c.in(0), c.real_attr("alpha", 0.2f), c.real_attr("beta", 0.5f))};
}

Tensors import_swish(Call& c) {
  return {swish(c.in(0), c.real_attr("alpha", 1.0f))};
}

Tensors import_thresholded_relu(Call& c) {
  return {thresholded_relu(c.in(0), c.real_attr("alpha", 1.0f))};
}

Tensors import_shrink(Call& c) {
  // Bounds are no integers where the elements are.
  const Tensor& x = c.in(0);
  const Tensor wide = x.dtype().is_float() ? x : cast(x, kFloat64);
  return {
      cast(soft_shrink(wide, c.real_attr("lambd", 0.5f), c.real_attr("bias", 0.0f)), x.dtype())};
}

constexpr Named<GeluKind> kGeluKinds[] = {{"none", GeluKind::Exact}, {"tanh", GeluKind::Tanh}};

Tensors import_gelu(Call& c) {
  return {gelu(c.in(0), named_attr<GeluKind>(c, "approximate", "none", kGeluKinds))};
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
};
// clang-format on

}  // namespace

std::span<const Row> activation_rows() {
  return kRows;
}

}  // namespace tiny::onnx
