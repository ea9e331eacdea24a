// The memory of a device may have larger pages than a mapped file: what kernels walk through from
// end to end, and is at least as large as such a page, is copied.  What they pick from is not.
#pragma once

#include <functional>
#include <span>

#include "schedule/rewrite/changed_graph.h"
#include "schedule/rewrite/constant_values.h"

namespace tiny {

// Bytes of a node's memory that lie in a mapped file; 0: they do not.
using MappedBytes = std::function<int64_t(const UOp&)>;

ChangedGraph copy_walked(std::span<const UOp> roots, const IsFixed& is_fixed,
                         const MappedBytes& mapped_bytes);

}  // namespace tiny
