// Quotients whose divisor is known, without a division.
#pragma once

#include "ir/uop.h"

namespace tiny {

// x / divisor of float32, of which nothing but the nearest integer is wanted: with a product by the
// reciprocal r and one correction, q + (x - q divisor) r, it is what a division gives (P.
// Markstein, "IA-64 and Elementary Functions", 2000, chapter 8; seen to be so for all mantissas of
// x), unless it is so small that it rounds to zero either way, or within half a step of infinity.
// None where the reciprocal is not normal.  `is_finite`: neither x nor the quotient is infinite.
UOp quotient_before_rounding(const UOp& x, double divisor, bool is_finite);

}  // namespace tiny
