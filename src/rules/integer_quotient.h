// Quotients of integers where vectors have no instruction for them.
#pragma once

#include <span>
#include <vector>

#include "ir/uop.h"

namespace tiny {

// Quotients and remainders of int32 (FloorDiv .. TruncMod) in steps that vectors have: shifts and
// masks for a divisor that is a power of two, else a division in float64.  That is exact: a
// quotient of 32-bit integers that is no integer is at least 2^-31 of itself away from one, which
// is more than the rounding of 2^-53.  int64, which float64 does not hold and indices are made of,
// stays.
std::vector<UOp> divide_in_floats(std::span<const UOp> roots);

}  // namespace tiny
