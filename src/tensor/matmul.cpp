#include "tensor/matmul.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "ir/build.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/movement.h"
#include "tensor/promotion.h"
#include "tensor/reduce.h"

namespace tiny {

// Nodes, not tensors, are between the operands and the product: nobody holds them.
Tensor matmul(const Tensor& a, const Tensor& b) {
  const Tensor* const operands[] = {&a, &b};
  require_one_context(operands);
  require(a.rank() >= 1 && b.rank() >= 1, Status::Shape, "matmul takes no scalars; got shapes ",
          a.shape(), " and ", b.shape());
  const DType dtype = common_dtype(operands);
  const DType wide = accumulator_dtype(dtype);
  // [.., m, 1, k] * [.., 1, n, k], summed over k; a vector is the only row, or column.
  const UOp left = as_dtype(a, wide);
  const UOp right = as_dtype(b, wide);
  Shape rows = shape_of(left);
  Shape matrix = shape_of(right);
  require(decide_equal(rows.back(), matrix[matrix.size() - std::min<size_t>(matrix.size(), 2)]),
          Status::Shape, "matmul of shapes ", a.shape(), " and ", b.shape(),
          ": the inner sizes differ");
  if (a.rank() == 1) rows.insert(rows.begin(), Dim(1));
  rows.insert(rows.end() - 1, Dim(1));
  if (b.rank() == 1) matrix.push_back(Dim(1));
  Ints turned = every_axis(std::ssize(matrix));
  std::swap(turned[turned.size() - 2], turned.back());
  const UOp transposed = make_permute(make_reshape(right, matrix), turned);
  Shape columns = shape_of(transposed);
  columns.insert(columns.end() - 2, Dim(1));
  const Shape shape = broadcast_shape(rows, columns);
  const UOp product =
      elementwise(Op::Mul, {broadcast_to(make_reshape(left, rows), shape),
                            broadcast_to(make_reshape(transposed, columns), shape)});
  const UOp total = make_reduce(broadcast_to(product, shape), dtype.is_bool() ? Op::Or : Op::Add,
                                {std::ssize(shape) - 1});
  Shape out(shape.begin(), shape.end() - 3);
  if (a.rank() > 1) out.push_back(shape[shape.size() - 3]);
  if (b.rank() > 1) out.push_back(shape[shape.size() - 2]);
  return a.with(cast(make_reshape(total, out), dtype));
}

namespace {

Tensor scaled(const Tensor& x, double by) {
  if (by == 1) return x;
  if (x.dtype().is_float()) return x * number(x, by);
  const Tensor wide = cast(x, kFloat64);
  return cast(wide * number(wide, by), x.dtype());
}

}  // namespace

Tensor gemm(const Tensor& a, const Tensor& b, const Tensor& c, double alpha, double beta) {
  const Tensor product = scaled(matmul(a, b), alpha);
  if (!c || beta == 0) return product;
  const Tensor rest = scaled(c, beta);
  require(broadcast_shape(rest.shape(), product.shape()) == product.shape(), Status::Shape,
          "gemm: c has the shape ", rest.shape(), ", which does not broadcast to the product's, ",
          product.shape());
  return product + rest;
}

}  // namespace tiny
