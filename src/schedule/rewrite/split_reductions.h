// Long reductions of few elements, cut into pieces that several cores can fold at once.
//
// Cores share the elements that a kernel stores.  Where there are too few of these,
//
//   Reduce(x)  becomes  Reduce over pieces of a value in memory that is  Reduce of each piece of x
//
// for every operation that reductions fold with.  How many pieces there are follows from the shapes
// and the target alone, so that results do not depend on who is free to run a program.
#pragma once

#include <span>

#include "cost/machine.h"
#include "schedule/rewrite/changed_graph.h"

namespace tiny {

// `roots` with every reduction cut that the target is expected to compute sooner in pieces.
ChangedGraph split_reductions(std::span<const UOp> roots, const Machine& target);

}  // namespace tiny
