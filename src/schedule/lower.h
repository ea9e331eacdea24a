// One kernel from the tensor graph: ranges over what is stored, pushed backwards through movement
// ops until they index buffers.
#pragma once

#include "ir/kernel.h"
#include "schedule/decide.h"
#include "schedule/schedule.h"

namespace tiny {

// The kernel that computes `node` and stores it row-major into the buffer of `destination`, as the
// part at `view` of it.
ScheduledKernel lower_store(const UOp& node, const UOp& destination, const View& view,
                            const Decision& decision);

// The same for a node with a buffer of its own, or for a write.
ScheduledKernel lower_value(const UOp& node, const Decision& decision);

}  // namespace tiny
