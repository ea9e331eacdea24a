// The first elements in order, by a network of exchanges: each stage compares whole vectors, so
// that nothing depends on the data.
#pragma once

#include <vector>

#include "tensor/tensor.h"

namespace tiny {

// Of distinct elements along axis 0: one tensor that orders them, or two, of which the second
// decides among those that are equal in the first.  All are greater than zero bits.
using Keys = std::vector<Tensor>;

// The first k in descending order.  Takes n log^2 k comparisons, n elements along the axis.
Keys greatest_keys(const Keys& keys, int64_t k);

}  // namespace tiny
