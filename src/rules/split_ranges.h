// Ranges split where kernels divide them, so that indices are ranges.
#pragma once

#include "ir/kernel.h"

namespace tiny {

// r // c and r % c, where c divides r's size: r becomes two ranges.
Kernel split_at_exact_divisors(const Kernel& kernel);

// Index expressions as simple as they are known to be, after a range has become others.
void simplify_indices(Kernel& kernel);

}  // namespace tiny
