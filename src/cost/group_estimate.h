// What a kernel takes on a machine that computes in groups of threads (cost/machine.h).
//
// The same resources as estimate.h counts, of all processors: instructions and arithmetic of their
// lanes, words between threads and shared memory by the banks that a warp's threads meet in
// (Loads), bytes by the sectors that they touch (Level2), what memory must give (Memory), and what
// one group waits for loads and at barriers where too few others hide it (Chain).  How many groups
// a processor holds follows from its threads, registers and shared memory.
#pragma once

#include <array>
#include <cstdint>

#include "cost/estimate.h"
#include "cost/machine.h"
#include "ir/kernel.h"

namespace tiny {

Estimate estimate_groups(const Kernel& kernel, const Machine& machine);

// How often the threads of a warp wait for each other in one access of shared memory: the turns
// beyond those that its words need at the least.  `strides`: elements from one thread to the next,
// along each axis of the group of `sizes` threads; each has `bytes` side by side.
int64_t bank_conflicts(const std::array<int64_t, kGroupAxes>& strides,
                       const std::array<int64_t, kGroupAxes>& sizes, int64_t element_bytes,
                       int64_t bytes, const GroupLimits& limits);

}  // namespace tiny
