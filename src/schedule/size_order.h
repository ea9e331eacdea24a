// Kernels whose sizes the run computes come after what computes these.
#pragma once

#include <span>

#include "schedule/computed_variable.h"
#include "schedule/schedule.h"

namespace tiny {

// The node with memory of its own that the value is, or is another shape of.
UOp stored_value(const ComputedVariable& computed);

// Moves each kernel that uses a variable behind the one that stores its value, and with it what
// must follow it; else their order stays.  Error{Unsupported} for a loop whose rounds are as many
// as such a variable says.
void order_by_sizes(Schedule& schedule, std::span<const ComputedVariable> computed);

}  // namespace tiny
