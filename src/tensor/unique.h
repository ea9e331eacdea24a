// The different elements of a list.
#pragma once

#include "tensor/tensor.h"

namespace tiny {

// Of n rows, or of the first `present` of them (int64, no axes; none: all):
// `count` are different (int64, no axes).  `first` says where each of these stands first, `counts`
// how often it stands there (int64, [n], any numbers behind the first `count`); `inverse` [n] which
// of these each row is, any number for one that is not present.  In ascending order, or
// (`by_place`) as they stand first.  NaN is unlike everything.
struct Unique {
  Tensor count;
  Tensor first;
  Tensor counts;
  Tensor inverse;
};
// `rows`: [n] or [n, m], compared from the first element of a row to its last.
Unique unique(const Tensor& rows, bool by_place, const Tensor& present = Tensor());

}  // namespace tiny
