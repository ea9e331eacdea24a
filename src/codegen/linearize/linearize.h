// From a kernel to its linear program: loops are opened, accumulators declared, values
// instantiated.
//
// needs:  a decomposed kernel (no transcendental ops), index expressions simplified.
// leaves: a verified linear program, before FMA formation (linear_passes.h).
//
// It knows `ranges`, their kinds, free ranges and reachability; nothing about operators.  A node is
// computed in the innermost loop among its free ranges; a Reduce or Stage opens its own loops
// there. Ranges of kind Upcast and Unroll never become nodes: instances appear here, memoised by
// the node and the coordinates of the ranges it depends on.
#pragma once

#include "ir/kernel.h"
#include "ir/linear.h"
#include "ir/target.h"

namespace tiny {

LinearProgram linearize(const Kernel& kernel, const Target& target);

}  // namespace tiny
