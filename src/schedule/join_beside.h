// Joins of kernels side by side: two that read the same value over the same ranges, or one that
// reads what the other stores, become one kernel with several stores.
//
// The order of the kernels is kept but for what has to wait for the joined one.  Saved are a
// launch, reading again what both read, and the buffer of what nobody else reads; paid for are work
// that is done twice and streams that a product's register tiles break into pieces.  A join may not
// keep more memory alive than it saves reading.
#pragma once

#include <cstdint>

#include "cost/machine.h"
#include "schedule/decide.h"
#include "schedule/join.h"
#include "schedule/schedule.h"

namespace tiny {

// `before`: what was decided before; the joins are numbered after those, by the kernel that comes
// second.
void join_beside(Schedule& schedule, const Decision& decision, const Machine& machine,
                 const JoinSettings& settings, const Joins& before);

}  // namespace tiny
