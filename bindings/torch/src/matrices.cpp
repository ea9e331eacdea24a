// Rows of products of matrices and vectors.
#include "call.h"

namespace tiny_torch {

namespace {

using V = Value;

// A factor of what more is added to: products of floats of 16 bits are rounded with the sum, once.
V factor(const Call& c, size_t index) {
  const V given = c.operand(index);
  return cast(given, wide(given.dtype()));
}
// beta * self + alpha * product, without a term that has the factor 0.
void add_scaled(Call& c, const V& product, size_t beta) {
  const at::Scalar scale = c.argument(beta).toScalar();
  const at::Scalar times = c.argument(beta + 1).toScalar();
  const tiny_dtype dtype = product.dtype();
  V result = times.toDouble() == 1 ? product : product * value_of_number(times, dtype);
  if (scale.toDouble() != 0) {
    const V self = cast(c.operand(0), dtype);
    result = (scale.toDouble() == 1 ? self : self * value_of_number(scale, dtype)) + result;
  }
  c.give(0, cast(result, c.operand(1).dtype()));
}

void product(Call& c) {
  c.give(0, matmul(c.operand(0), c.operand(1)));
}
void sum_of_products(Call& c) {
  for (const size_t k : {size_t{0}, size_t{1}})
    TORCH_CHECK(c.tensor(k).dim() == 1, "1D tensors expected, but got ", c.tensor(0).dim(),
                "D and ", c.tensor(1).dim(), "D tensors");
  TORCH_CHECK(c.tensor(0).scalar_type() == c.tensor(1).scalar_type(),
              "dot : expected both vectors to have same dtype, but found ",
              c.tensor(0).scalar_type(), " and ", c.tensor(1).scalar_type());
  const V a = c.value(0);
  const V b = c.value(1);
  TORCH_CHECK(a.numel() == b.numel(), "inconsistent tensor size, expected tensor [", a.numel(),
              "] and src [", b.numel(),
              "] to have the same number of elements, and one dimension each");
  c.give(0, cast(matmul(a, b), a.dtype()));
}
void add_product(Call& c) {
  add_scaled(c, matmul(factor(c, 1), factor(c, 2)), 3);
}
void add_outer(Call& c) {
  add_scaled(c, unsqueeze(factor(c, 1), 1) * unsqueeze(factor(c, 2), 0), 3);
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
