// Ascending order by one binary digit after the other: as many steps however many elements there
// are, for axes whose length only the run knows.
#pragma once

#include "tensor/tensor.h"

namespace tiny {

// Along the last axis of `keys` (unsigned integers, [columns, .., n], of which the first column
// that differs decides) the places of the elements in ascending order, of equals the earlier
// first: int64 [.., n].
Tensor ascending_places(const Tensor& keys);

}  // namespace tiny
