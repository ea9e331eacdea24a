// Functions of angles, of arcs, and of the hyperbola, element by element: made of what the engine
// computes, as exact as these.  Integers and bools are taken as float32; 16-bit floats go through
// float32, so that steps in between do not round.
#pragma once

#include "tensor/tensor.h"

namespace tiny {

Tensor tan(const Tensor& a);
Tensor asin(const Tensor& a);
Tensor acos(const Tensor& a);
Tensor atan(const Tensor& a);
Tensor sinh(const Tensor& a);
Tensor cosh(const Tensor& a);
Tensor asinh(const Tensor& a);
Tensor acosh(const Tensor& a);
Tensor atanh(const Tensor& a);

}  // namespace tiny
