// The greatest or the lowest elements along an axis.
#pragma once

#include "tensor/tensor.h"

namespace tiny {

// The first k in descending (`largest`) or ascending order, of equals the earlier first; NaN is the
// greatest.  `indices` says where they stood, int64.  The axis' size is a number.
struct TopK {
  Tensor values;
  Tensor indices;
};
TopK top_k(const Tensor& a, int64_t k, int64_t axis, bool largest);

}  // namespace tiny
