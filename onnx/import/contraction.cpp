// Products of matrices, and sums of products in general.
#include "base/error.h"
#include "onnx/import/functions.h"
#include "onnx/import/import.h"
#include "onnx/import/table.h"
#include "tensor/create.h"
#include "tensor/einsum.h"
#include "tensor/indexing.h"
#include "tensor/linalg.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/quantization.h"

namespace tiny::onnx {

namespace {

Tensors import_matmul(Call& c) {
  return {matmul(c.in(0), c.in(1))};
}

Tensors import_gemm(Call& c) {
  return {gemm_of(c)};
}

Tensors import_matmul_integer(Call& c) {
  return {matmul_integer(c.in(0), c.in_or(2, Tensor()), c.in(1), c.in_or(3, Tensor()))};
}

Tensors import_einsum(Call& c) {
  return {einsum(c.text_attr("equation", ""), c.all())};
}

Tensors import_det(Call& c) {
  Tensor x = c.in(0);
  c.check(x.rank() >= 2, "it takes two axes or more; got ", x.rank());
  const tiny::Dim rows = size_of(x, -2), columns = size_of(x, -1);
  const tiny::Dim n = c.importer().common_size(rows, columns, c.node());
  if (n != rows || n != columns) {
    const Tensor both = arange(c.context(), kInt64, n);
    x = gather(gather(x, both, -1), both, -2);
  }
  return {det(x)};
}

constexpr int64_t kNow = kNewestOpset;

// clang-format off
constexpr Row kRows[] = {
    {"MatMul",        1,  kNow, import_matmul},
    {"MatMulInteger", 10, kNow, import_matmul_integer},
    {"Gemm",          1,  kNow, import_gemm},
    {"Einsum",        12, kNow, import_einsum},
    {"Det",           11, kNow, import_det},
};
// clang-format on

}  // namespace

Tensor gemm_of(const Call& c) {
  const auto operand = [&](size_t i, const char* turned) {
    c.check(c.in(i).rank() == 2, "input ", i, " has ", c.in(i).rank(), " axes and must have 2");
    return c.flag(turned, false) ? transpose(c.in(i), 0, 1) : c.in(i);
  };
  return gemm(operand(0, "transA"), operand(1, "transB"), c.in_or(2, Tensor()),
              static_cast<double>(c.real_attr("alpha", 1)),
              static_cast<double>(c.real_attr("beta", 1)));
}

std::span<const Row> contraction_rows() {
  return kRows;
}

}  // namespace tiny::onnx
