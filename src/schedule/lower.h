// One kernel from the tensor graph: ranges over what is stored, pushed backwards through movement
// ops until they index buffers.
#pragma once

#include <optional>
#include <span>

#include "ir/kernel.h"
#include "schedule/decide.h"
#include "schedule/schedule.h"

namespace tiny {

// The kernel that computes `node` and stores it row-major into the buffer of `destination`, as the
// part at `view` of it.
ScheduledKernel lower_store(const UOp& node, const UOp& destination, const View& view,
                            const Decision& decision);

// One kernel that computes several nodes and stores each into its destination, the one with the
// most elements first.  What one of them needs of another is computed where it is needed, at an
// index that both have only once; so are the nodes `inlined`, which have a buffer otherwise:
// values, or versions that these stores write whole.  None if the nodes have no ranges in common.
std::optional<ScheduledKernel> lower_together(std::span<const ScheduledStore> stores,
                                              std::span<const UOp> inlined,
                                              const Decision& decision);

// Names a kernel by its sizes, of which the first `outputs` are those of what it stores.
void name_by_sizes(Kernel& kernel, size_t outputs);

// lower_store for a node with a buffer of its own, or for a write.
ScheduledKernel lower_value(const UOp& node, const Decision& decision);

}  // namespace tiny
