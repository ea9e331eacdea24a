// Kernels that differ in how many elements they compute, and in nothing else, as one.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/kernel.h"

namespace tiny {

// Small kernels of one loop over elements that lie one after the other become one kernel, of a size
// that each launch gives, where there are several: it has a variable.  By kernel: the variable's
// value, or 0 where the kernel is as it was.  For plans that run once, to which the code of a known
// size is not worth its making.
std::vector<int64_t> share_sizes(std::vector<Kernel>& kernels);

}  // namespace tiny
