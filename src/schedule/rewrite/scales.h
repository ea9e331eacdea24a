// Scales leave sums of products, which then are sums of what is in memory:
//
//   sum (a s)(b t)  ->  s t sum ab    of widened bytes, where the target multiplies these in words
//                                     (ir/dot.h): in int32, which cannot overflow here
//   sum x (w s)     ->  s sum x w     of a narrow constant w that is widened where it is read
//                                     (schedule/rewrite/narrow_operands.h)
//
// Scales are the same for all steps of the sum.  docs/semantics.md tells what that does to
// rounding.
#pragma once

#include <span>
#include <vector>

#include "cost/machine.h"
#include "ir/uop.h"
#include "schedule/rewrite/changed_graph.h"

namespace tiny {

// `roots` with every such sum rewritten; `varies`, by id: nodes that inputs reach.
ChangedGraph rewrite_scales(std::span<const UOp> roots, const Machine& target,
                            const std::vector<uint8_t>& varies);

}  // namespace tiny
