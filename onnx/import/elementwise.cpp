// Functions of one operand: rounding, exponentials, trigonometry, tests.
#include "tensor/elementwise.h"

#include <numbers>

#include "base/error.h"
#include "onnx/import/functions.h"
#include "onnx/import/table.h"
#include "tensor/activation.h"
#include "tensor/create.h"

namespace tiny::onnx {

namespace {

Tensor tan(const Tensor& a) {
  return sin(a) / cos(a);
}

Tensor cosh(const Tensor& a) {
  return (exp(a) + exp(neg(a))) * number(a, 0.5);
}

// The difference of exponentials loses digits near 0, where the series takes over.
Tensor sinh(const Tensor& a) {
  const Tensor z = square(a);
  Tensor series = number(a, 1.0);
  for (int k = 8; k >= 1; --k)
    series = number(a, 1.0) + series * z * number(a, 1.0 / (2.0 * k * (2.0 * k + 1)));
  const Tensor far = (exp(a) - exp(neg(a))) * number(a, 0.5);
  return where(less(abs(a), number(a, 1.0)), series * a, far);
}

// Halving the angle twice leaves |a| < 0.2, where eleven terms of the series are exact to double.
Tensor atan(const Tensor& a) {
  const Tensor one = number(a, 1.0);
  const Tensor size = abs(a);
  const Tensor inverted = less(one, size);
  Tensor t = where(inverted, reciprocal(size), size);
  for (int i = 0; i < 2; ++i) t = t / (one + sqrt(one + square(t)));
  const Tensor z = square(t);
  Tensor series = number(a, 1.0 / 21);
  for (int k = 9; k >= 0; --k) series = number(a, 1.0 / (2 * k + 1)) - z * series;
  const Tensor angle = t * series * number(a, 4.0);
  const Tensor whole = where(inverted, number(a, std::numbers::pi / 2) - angle, angle);
  return where(less(a, number(a, 0.0)), neg(whole), whole);
}

Tensor asin(const Tensor& a) {
  const Tensor one = number(a, 1.0);
  return atan(a / sqrt((one - a) * (one + a)));
}

Tensor acos(const Tensor& a) {
  const Tensor one = number(a, 1.0);
  return atan(sqrt((one - a) / (one + a))) * number(a, 2.0);
}

// log(x + sqrt(x^2 + c)) for large x, where the square would overflow.
Tensor far_log(const Tensor& a) {
  return log(a) + number(a, std::numbers::ln2);
}
Tensor is_far(const Tensor& a) {
  return less(number(a, 1e8), a);
}

Tensor asinh(const Tensor& a) {
  const Tensor one = number(a, 1.0);
  const Tensor size = abs(a);
  const Tensor z = square(size);
  const Tensor near = log1p(size + z / (one + sqrt(one + z)));
  const Tensor whole = where(is_far(size), far_log(size), near);
  return where(less(a, number(a, 0.0)), neg(whole), whole);
}

Tensor acosh(const Tensor& a) {
  const Tensor t = a - number(a, 1.0);
  const Tensor near = log1p(t + sqrt(t * number(a, 2.0) + square(t)));
  return where(is_far(a), far_log(a), near);
}

Tensor atanh(const Tensor& a) {
  return log1p(a * number(a, 2.0) / (number(a, 1.0) - a)) * number(a, 0.5);
}

// 16-bit floats go through float32, so that intermediate steps do not round.
template <Tensor (*kFunction)(const Tensor&)>
Tensor wide(const Tensor& a) {
  require(a.dtype().is_float(), Status::InvalidModel, "it takes floats; got ",
          tiny::to_string(a.dtype()));
  if (a.dtype().bits() >= 32) return kFunction(a);
  return cast(kFunction(cast(a, kFloat32)), a.dtype());
}

Tensors import_is_inf(Call& c) {
  const Tensor& a = c.in(0);
  const Tensor infinity = number(a, __builtin_inf());
  const Tensor up = equal(a, infinity);
  const Tensor down = equal(a, neg(infinity));
  const bool positive = c.flag("detect_positive", true);
  const bool negative = c.flag("detect_negative", true);
  if (positive && negative) return {bit_or(up, down)};
  if (positive) return {up};
  if (negative) return {down};
  return {full(c.context(), kBool, a.shape(), 0)};
}

constexpr int64_t kNow = kNewestOpset;

// clang-format off
constexpr Row kRows[] = {
    {"Abs",        1,  kNow, nullptr, 0, abs},
    {"Neg",        1,  kNow, nullptr, 0, neg},
    {"Ceil",       1,  kNow, nullptr, 0, ceil},
    {"Floor",      1,  kNow, nullptr, 0, floor},
    {"Round",      11, kNow, nullptr, 0, round},
    {"Exp",        1,  kNow, nullptr, 0, exp},
    {"Log",        1,  kNow, nullptr, 0, log},
    {"Sqrt",       1,  kNow, nullptr, 0, sqrt},
    {"Reciprocal", 1,  kNow, nullptr, 0, reciprocal},
    {"Sign",       9,  kNow, nullptr, 0, sign},
    {"Erf",        9,  kNow, nullptr, 0, erf},
    {"Sin",        7,  kNow, nullptr, 0, sin},
    {"Cos",        7,  kNow, nullptr, 0, cos},
    {"Tan",        7,  kNow, nullptr, 0, wide<tan>},
    {"Asin",       7,  kNow, nullptr, 0, wide<asin>},
    {"Acos",       7,  kNow, nullptr, 0, wide<acos>},
    {"Atan",       7,  kNow, nullptr, 0, wide<atan>},
    {"Sinh",       9,  kNow, nullptr, 0, wide<sinh>},
    {"Cosh",       9,  kNow, nullptr, 0, wide<cosh>},
    {"Asinh",      9,  kNow, nullptr, 0, wide<asinh>},
    {"Acosh",      9,  kNow, nullptr, 0, wide<acosh>},
    {"Atanh",      9,  kNow, nullptr, 0, wide<atanh>},
    {"Not",        1,  kNow, nullptr, 0, invert},
    {"BitwiseNot", 18, kNow, nullptr, 0, invert},
    {"IsNaN",      9,  kNow, nullptr, 0, is_nan},
    {"IsInf",      10, kNow, import_is_inf},
};
// clang-format on

}  // namespace

std::span<const Row> elementwise_rows() {
  return kRows;
}

}  // namespace tiny::onnx
