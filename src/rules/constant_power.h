// Powers whose exponent is known, in a few products, quotients and square roots.  NaN, infinities
// and zeros are as in C's <math.h>; no error is greater than that of pow_in_steps
// (rules/transcendental.h).
#pragma once

#include "ir/uop.h"

namespace tiny {

// A constant of the dtype (and shape, where there is one) of `like`.
using ConstantLike = UOp (*)(const UOp& like, double value);

// x^exponent of float32, float64 or integers, with a fixed order of products.  None where that
// would cost accuracy: beyond -2 .. 4, -0.5, 0.5 and 1.5 of floats, and beyond 64 of integers.
UOp constant_power(const UOp& x, double exponent, ConstantLike constant);

// The same in a kernel, where float32 takes more exponents: products in float64, as long as they
// are less work than the general way.
UOp constant_power_in_kernel(const UOp& x, double exponent);

}  // namespace tiny
