#include "tensor/reduce.h"

#include <algorithm>

#include "tensor/activation.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/movement.h"
#include "tensor/promotion.h"

namespace tiny {

Tensor reduce_as_is(const Tensor& a, Op op, const Ints& axes, bool keepdims) {
  const Ints folded = checked_axes(axes, a.rank());
  const Tensor kept = a.with(make_reduce(a.node(), op, folded));
  return keepdims ? kept : squeeze(kept, folded);
}

Dim reduced_count(const Tensor& a, const Ints& axes) {
  Dim n = 1;
  for (int64_t axis : checked_axes(axes, a.rank())) n = n * a.shape()[static_cast<size_t>(axis)];
  return n;
}

Tensor sum(const Tensor& a, const Ints& axes, bool keepdims) {
  const DType dtype = sum_dtype(a.dtype());
  return cast(reduce_as_is(cast(a, accumulator_dtype(dtype)), Op::Add, axes, keepdims), dtype);
}

Tensor sum_in_dtype(const Tensor& a, const Ints& axes, bool keepdims) {
  return a.dtype().is_float() ? sum(a, axes, keepdims) : reduce_as_is(a, Op::Add, axes, keepdims);
}

Tensor prod(const Tensor& a, const Ints& axes, bool keepdims) {
  const DType dtype = sum_dtype(a.dtype());
  return cast(reduce_as_is(cast(a, accumulator_dtype(dtype)), Op::Mul, axes, keepdims), dtype);
}

Tensor max(const Tensor& a, const Ints& axes, bool keepdims) {
  return reduce_as_is(a, Op::Max, axes, keepdims);
}

Tensor min(const Tensor& a, const Ints& axes, bool keepdims) {
  return reduce_as_is(a, Op::Min, axes, keepdims);
}

Tensor mean(const Tensor& a, const Ints& axes, bool keepdims) {
  const DType dtype = float_dtype(a);
  const Tensor total = reduce_as_is(cast(a, accumulator_dtype(dtype)), Op::Add, axes, keepdims);
  const Tensor count = cast(size_tensor(a.context_ref(), reduced_count(a, axes)), total.dtype());
  return cast(div(total, count), dtype);
}

Tensor any(const Tensor& a, const Ints& axes, bool keepdims) {
  return reduce_as_is(cast(a, kBool), Op::Or, axes, keepdims);
}

Tensor all(const Tensor& a, const Ints& axes, bool keepdims) {
  return reduce_as_is(cast(a, kBool), Op::And, axes, keepdims);
}

Tensor prod_in_dtype(const Tensor& a, const Ints& axes, bool keepdims) {
  return a.dtype().is_float() ? prod(a, axes, keepdims) : reduce_as_is(a, Op::Mul, axes, keepdims);
}

Tensor mean_in_dtype(const Tensor& a, const Ints& axes, bool keepdims) {
  const Dim size = reduced_count(a, axes);
  if (a.dtype().is_float() && size.is_const() && !size.is(0)) return mean(a, axes, keepdims);
  const Tensor elements = size_tensor(a.context_ref(), size);
  const Tensor count = maximum(elements, number_int(elements, 1));
  if (a.dtype().is_float()) {
    const Tensor sum = reduce_as_is(cast(a, accumulator_dtype(a.dtype())), Op::Add, axes, keepdims);
    return cast(div(sum, cast(count, sum.dtype())), a.dtype());
  }
  const Tensor total = reduce_as_is(cast(a, kInt64), Op::Add, axes, keepdims);
  return cast(trunc_div(total, count), a.dtype());
}

Tensor sum_square_in_dtype(const Tensor& a, const Ints& axes, bool keepdims) {
  return sum_in_dtype(square(a), axes, keepdims);
}

Tensor l1_norm_in_dtype(const Tensor& a, const Ints& axes, bool keepdims) {
  return sum_in_dtype(abs(a), axes, keepdims);
}

namespace {

// Floats in which integers are exact up to 2^53.
Tensor in_floats(const Tensor& a) {
  return a.dtype().is_float() ? a : cast(a, kFloat64);
}

}  // namespace

Tensor l2_norm_in_dtype(const Tensor& a, const Ints& axes, bool keepdims) {
  return cast(sqrt(sum(square(in_floats(a)), axes, keepdims)), a.dtype());
}

Tensor log_sum_in_dtype(const Tensor& a, const Ints& axes, bool keepdims) {
  return cast(log(sum(in_floats(a), axes, keepdims)), a.dtype());
}

Tensor logsumexp_in_dtype(const Tensor& a, const Ints& axes, bool keepdims) {
  return cast(logsumexp(in_floats(a), axes, keepdims), a.dtype());
}

}  // namespace tiny
