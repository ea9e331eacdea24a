// Memory that a kernel may overwrite while it still reads it.
#pragma once

#include <cstddef>
#include <vector>

#include "schedule/schedule.h"

namespace tiny {

// The parameters whose memory this store of the kernel may take over: every load of it reads the
// very element that is then stored, in the same iteration, and no reduction is between the two.  So
// a window, a contracted operand, a reversed or repeated one never is.  Empty if the store is to a
// part of its destination, or the kernel checks indices, or reduces and has other stores.
std::vector<size_t> params_to_take_over(const ScheduledKernel& kernel, size_t number);

}  // namespace tiny
