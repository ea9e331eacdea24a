// Rows of products of matrices and vectors.
#include "call.h"

namespace tiny_torch {

namespace {

using V = Value;

// beta * self + alpha * product, without a term that has the factor 0.
void add_scaled(Call& c, const V& product, size_t beta) {
  const at::Scalar scale = c.argument(beta).toScalar();
  const at::Scalar factor = c.argument(beta + 1).toScalar();
  const tiny_dtype dtype = product.dtype();
  V result = factor.toDouble() == 1 ? product : product * value_of_number(factor, dtype);
  if (scale.toDouble() != 0) {
    const V self = c.operand(0);
    result = (scale.toDouble() == 1 ? self : self * value_of_number(scale, dtype)) + result;
  }
  c.give(0, result);
}

void product(Call& c) {
  c.give(0, matmul(c.operand(0), c.operand(1)));
}
void sum_of_products(Call& c) {
  const V a = c.value(0);
  const V b = c.value(1);
  TORCH_CHECK(a.rank() == 1 && b.rank() == 1 && a.numel() == b.numel(),
              "inconsistent tensor size, expected tensor [", a.numel(), "] and src [", b.numel(),
              "] to have the same number of elements, and one dimension each");
  c.give(0, cast(matmul(a, b), a.dtype()));
}
void add_product(Call& c) {
  add_scaled(c, matmul(c.operand(1), c.operand(2)), 3);
}
void add_outer(Call& c) {
  add_scaled(c, unsqueeze(c.value(1), 1) * unsqueeze(c.value(2), 0), 3);
}

constexpr Row kMatrices[] = {
    {"mm.out", product},        {"bmm.out", product},       {"dot", sum_of_products},
    {"vdot", sum_of_products},  {"addmm.out", add_product}, {"baddbmm.out", add_product},
    {"addmv.out", add_product}, {"addr", add_outer},        {"addr.out", add_outer},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  add_rows(m, kMatrices);
}

}  // namespace

}  // namespace tiny_torch
