// Reductions.  Axes may be negative; `keepdims` leaves them with size 1.  Dtypes: sums and products
// of bool and of small integers are int64; 16-bit floats accumulate in float32 and round once.
#pragma once

#include "tensor/tensor.h"

namespace tiny {

Tensor sum(const Tensor& a, const Ints& axes, bool keepdims = false);
Tensor prod(const Tensor& a, const Ints& axes, bool keepdims = false);
Tensor max(const Tensor& a, const Ints& axes, bool keepdims = false);  // NaN if any is NaN
Tensor min(const Tensor& a, const Ints& axes, bool keepdims = false);
Tensor mean(const Tensor& a, const Ints& axes, bool keepdims = false);  // integers as float32
Tensor any(const Tensor& a, const Ints& axes, bool keepdims = false);
Tensor all(const Tensor& a, const Ints& axes, bool keepdims = false);

// `op` over the axes in the dtype of `a` itself, without a wider accumulator.
Tensor reduce_as_is(const Tensor& a, Op op, const Ints& axes, bool keepdims);
// The sum in the dtype of `a`: 16-bit floats accumulate in float32, integers wrap.
Tensor sum_in_dtype(const Tensor& a, const Ints& axes, bool keepdims = false);
// Others in the dtype of `a`.  A mean of no elements is 0.  Integers wrap; a mean of them, and what
// is a root or a logarithm, is rounded towards zero.
Tensor prod_in_dtype(const Tensor& a, const Ints& axes, bool keepdims = false);
Tensor mean_in_dtype(const Tensor& a, const Ints& axes, bool keepdims = false);
Tensor sum_square_in_dtype(const Tensor& a, const Ints& axes, bool keepdims = false);
Tensor l1_norm_in_dtype(const Tensor& a, const Ints& axes, bool keepdims = false);
Tensor l2_norm_in_dtype(const Tensor& a, const Ints& axes, bool keepdims = false);
Tensor log_sum_in_dtype(const Tensor& a, const Ints& axes, bool keepdims = false);
Tensor logsumexp_in_dtype(const Tensor& a, const Ints& axes, bool keepdims = false);
// The number of elements that one result of a reduction over `axes` folds.
Dim reduced_count(const Tensor& a, const Ints& axes);

}  // namespace tiny
