// Ranges split where kernels divide them, so that indices are ranges.
#pragma once

#include <cstdint>
#include <optional>

#include "ir/kernel.h"

namespace tiny {

struct DividedRange {
  UOp range;
  int64_t divisor = 0;
};

// Of r // c and r % c, where r's size is more than c, or a run's.  Of (r + offset) // c and
// (r + offset) % c too, where c is so small that the steps of a turn may be written apart.
std::optional<DividedRange> divided_range(const UOp& u);

// r // c and r % c, where c divides r's size: r becomes two ranges.
Kernel split_at_exact_divisors(const Kernel& kernel);

// Index expressions as simple as they are known to be, after a range has become others.
void simplify_indices(Kernel& kernel);

}  // namespace tiny
