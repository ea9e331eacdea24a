// Functions of one operand: rounding, exponentials, trigonometry, tests.
#include "tensor/elementwise.h"

#include "base/error.h"
#include "onnx/import/functions.h"
#include "onnx/import/table.h"
#include "tensor/trigonometry.h"

namespace tiny::onnx {

namespace {

// A model may ask these of floats alone.
template <Tensor (*kFunction)(const Tensor&)>
Tensor of_floats(const Tensor& a) {
  require(a.dtype().is_float(), Status::InvalidModel, "it takes floats; got ",
          tiny::to_string(a.dtype()));
  return kFunction(a);
}

Tensor erf_in_dtype(const Tensor& a) {
  return cast(erf(a), a.dtype());
}

Tensors import_is_inf(Call& c) {
  return {is_inf(c.in(0), c.flag("detect_positive", true), c.flag("detect_negative", true))};
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
    {"Erf",        9,  kNow, nullptr, 0, erf_in_dtype},
    {"Sin",        7,  kNow, nullptr, 0, sin},
    {"Cos",        7,  kNow, nullptr, 0, cos},
    {"Tan",        7,  kNow, nullptr, 0, of_floats<tan>},
    {"Asin",       7,  kNow, nullptr, 0, of_floats<asin>},
    {"Acos",       7,  kNow, nullptr, 0, of_floats<acos>},
    {"Atan",       7,  kNow, nullptr, 0, of_floats<atan>},
    {"Sinh",       9,  kNow, nullptr, 0, of_floats<sinh>},
    {"Cosh",       9,  kNow, nullptr, 0, of_floats<cosh>},
    {"Asinh",      9,  kNow, nullptr, 0, of_floats<asinh>},
    {"Acosh",      9,  kNow, nullptr, 0, of_floats<acosh>},
    {"Atanh",      9,  kNow, nullptr, 0, of_floats<atanh>},
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
