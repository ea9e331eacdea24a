// Which kernels of a tape must have ended before another begins.
//
// Those that touch the same memory, of which one writes it; of slots in the arena, also by where
// they lie.  Kernels that store parts of one value do not wait for each other, unless there are
// very many: what is found grows with the tape, not with its square.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/program.h"

namespace tiny {

// Of each entry of the plan's tape: earlier entries, in order.  One that follows from others may be
// left out.  With writes of tensors, or an arena that is laid out anew for each run, every entry
// comes after the one before it.
std::vector<std::vector<uint32_t>> find_dependencies(const Plan& plan);

}  // namespace tiny
