// Ranges made fit for optimisation: `//` and `%` disappear by splitting ranges at the divisors, and
// ranges that walk memory as one become one.
#pragma once

#include "ir/kernel.h"

namespace tiny {

// r // c and r % c, where c divides r's size: r becomes two ranges.  What remains is opaque.
// runs first: merging would hide the divisors.
Kernel split_at_divisors(const Kernel& kernel);

// Two ranges that every access walks as one run of memory become one range of the product size.
Kernel merge_ranges(Kernel kernel);

}  // namespace tiny
