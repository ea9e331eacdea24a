// Kernels in an order in which each sees the versions of memory that it reads.
#pragma once

#include "schedule/decide.h"
#include "schedule/schedule.h"

namespace tiny {

// Orders the kernels of a schedule that writes to buffers: after what they read is there (RAW),
// before it is overwritten (WAR), and writes of one buffer one after the other (WAW).  Where no
// order does, what a kernel needs of an old version is copied first; the schedule counts how often.
// Where values are computed again to save memory (Op::Alias), kernels that free some run as soon as
// they can.  Without writes or such values nothing changes.
void order_kernels(Schedule& schedule, Decision& decision, std::span<const UOp> outputs);

}  // namespace tiny
