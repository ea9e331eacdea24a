// Products of matrices, as views, a multiplication and a sum.
#pragma once

#include "tensor/tensor.h"

namespace tiny {

// numpy.matmul: the last two axes multiply, those before broadcast, a vector counts as a row or a
// column that the result lacks.  16-bit floats accumulate in float32; integers wrap.
Tensor matmul(const Tensor& a, const Tensor& b);
// alpha a b + beta c, where c broadcasts to the product; without c, or where beta is 0, alpha a b.
// Integers are scaled in float64 and rounded towards zero.
Tensor gemm(const Tensor& a, const Tensor& b, const Tensor& c = Tensor(), double alpha = 1,
            double beta = 1);

}  // namespace tiny
