// The greatest or the lowest elements along an axis.
#pragma once

#include "tensor/tensor.h"

namespace tiny {

// The first k in descending (`largest`) or ascending order, of equals the earlier first; NaN is the
// greatest.  `indices` says where they stood, int64.  Of a size that is no number more wanted than
// there are end the run with Error{Index}.
struct TopK {
  Tensor values;
  Tensor indices;
};
TopK top_k(const Tensor& a, const Dim& k, int64_t axis, bool largest);
// The places of rows, [n] or [n, m] compared from their first elements on, in ascending order, of
// equals the earlier first, where n is no number.
Tensor ascending_rows(const Tensor& rows);

}  // namespace tiny
