// Bytes that are widened, scaled and quantised again as they were, or but for a clamp, are those
// bytes: what quantisers write around every operator that only moves elements.
#pragma once

#include <span>

#include "schedule/rewrite/changed_graph.h"

namespace tiny {

// `roots` with every value of one byte that is computed from one other of its type, elementwise,
// with constants for all other operands, and that is found to be it, or a clamp of it, for all of
// its values.  What the roots are views of stays: they are to have memory of their own.
ChangedGraph drop_requantized(std::span<const UOp> roots);

}  // namespace tiny
