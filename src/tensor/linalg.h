// Square matrices, in the last two axes; the axes before are a batch.  16-bit floats are computed
// in float32, integers as float32.
#pragma once

#include "tensor/tensor.h"

namespace tiny {

// The determinant, [batch..]; of no rows 1.
Tensor det(const Tensor& a);
// The inverse; of a singular matrix numbers that are no use (infinities and NaN).
Tensor inverse(const Tensor& a);

}  // namespace tiny
