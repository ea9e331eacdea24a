// Products of matrices, as views, a multiplication and a sum.
#pragma once

#include "tensor/tensor.h"

namespace tiny {

// numpy.matmul: the last two axes multiply, those before broadcast, a vector counts as a row or a
// column that the result lacks.  16-bit floats accumulate in float32; integers wrap.
Tensor matmul(const Tensor& a, const Tensor& b);

}  // namespace tiny
