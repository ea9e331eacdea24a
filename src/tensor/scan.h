// Running sums and products.
#pragma once

#include "tensor/tensor.h"

namespace tiny {

// Sums of the elements up to each (`exclusive`: before it; `reverse`: from the end), as
// numpy.cumsum.
Tensor cumsum(const Tensor& a, int64_t axis, bool exclusive = false, bool reverse = false);
// Products in the same way, in a's dtype; of none: 1.
Tensor cumprod(const Tensor& a, int64_t axis, bool exclusive = false, bool reverse = false);

}  // namespace tiny
