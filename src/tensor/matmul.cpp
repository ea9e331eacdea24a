#include "tensor/matmul.h"

#include "base/error.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/movement.h"
#include "tensor/promotion.h"
#include "tensor/reduce.h"

namespace tiny {

Tensor matmul(const Tensor& a, const Tensor& b) {
  const Tensor operands[] = {a, b};
  require_one_context(operands);
  require(a.rank() >= 1 && b.rank() >= 1, Status::Shape, "matmul takes no scalars; got shapes ",
          a.shape(), " and ", b.shape());
  const DType dtype = common_dtype(operands);
  const DType wide = accumulator_dtype(dtype);
  const Tensor left = cast(a.rank() == 1 ? unsqueeze(a, {0}) : a, wide);
  const Tensor right = cast(b.rank() == 1 ? unsqueeze(b, {1}) : b, wide);
  require(decide_equal(left.shape().back(), right.shape()[right.shape().size() - 2]), Status::Shape,
          "matmul of shapes ", a.shape(), " and ", b.shape(), ": the inner sizes differ");
  // [.., m, 1, k] * [.., 1, n, k], summed over k.
  const UOp rows = make_reshape(left.node(), [&] {
    Shape s = left.shape();
    s.insert(s.end() - 1, Dim(1));
    return s;
  }());
  const Tensor turned = transpose(right, -1, -2);
  const UOp columns = make_reshape(turned.node(), [&] {
    Shape s = turned.shape();
    s.insert(s.end() - 2, Dim(1));
    return s;
  }());
  const Tensor product = mul(a.with(rows), a.with(columns));
  const Tensor total = reduce_as_is(product, dtype.is_bool() ? Op::Or : Op::Add, {-1}, false);
  Ints gone;
  if (a.rank() == 1) gone.push_back(-2);
  if (b.rank() == 1) gone.push_back(-1);
  return cast(squeeze(total, gone), dtype);
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
