// Joins of kernels side by side: two that read the same value over the same ranges, or one that
// reads what the other stores, become one kernel with several stores.
//
// The joined one stands where the first of both stood, behind what the other needs.  Saved are a
// launch, reading again what both read, and the buffer of what nobody else reads; paid for are work
// that is done twice and streams that a product's register tiles break into pieces.  A join may not
// make more earlier than it saves reading.
#pragma once

#include <cstdint>
#include <span>

#include "cost/machine.h"
#include "schedule/decide.h"
#include "schedule/join.h"
#include "schedule/schedule.h"

namespace tiny {

// `before`: what was decided before; the joins are numbered after those, by the kernel that comes
// second.  What the outputs are views of has memory in any case.
void join_beside(Schedule& schedule, const Decision& decision, std::span<const UOp> outputs,
                 const Machine& machine, const JoinSettings& settings, const Joins& before);

}  // namespace tiny
