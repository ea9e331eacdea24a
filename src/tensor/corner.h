// Slopes at corners.
#pragma once

#include "shape/bound.h"
#include "tensor/tensor.h"

namespace tiny {

// A maximum or minimum of floats whose slope where it meets a number is as said; it is half
// otherwise.
Tensor with_corner(const Tensor& extremum, Corner corner);

}  // namespace tiny
