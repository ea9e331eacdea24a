// Ranges split where kernels divide them, so that indices are ranges.
#pragma once

#include <cstdint>
#include <optional>

#include "ir/kernel.h"

namespace tiny {

// (r + offset) // c or (r + offset) % c.
struct DividedRange {
  UOp range;
  int64_t offset = 0;
  int64_t divisor = 0;
};

// Of a range whose size is known, by less than that; offsets only of turns that a few values take,
// which are written apart.
std::optional<DividedRange> divided_range(const UOp& u);

// r // c and r % c, where c divides r's size: r becomes two ranges.
Kernel split_at_exact_divisors(const Kernel& kernel);

// Index expressions as simple as they are known to be, after a range has become others.
void simplify_indices(Kernel& kernel);

}  // namespace tiny
