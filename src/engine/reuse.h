// Memory that a kernel may overwrite while it still reads it.
#pragma once

#include <cstddef>
#include <vector>

#include "schedule/schedule.h"

namespace tiny {

// The parameters whose memory the kernel's store may take over: every load of it reads the very
// element that is then stored, in the same iteration, and no reduction is between the two.  So a
// window, a contracted operand, a reversed or repeated one never is.  Empty if the kernel writes a
// part of its destination, or checks indices.
std::vector<size_t> params_to_take_over(const ScheduledKernel& kernel);

}  // namespace tiny
