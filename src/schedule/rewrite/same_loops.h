// Loops over the same steps, each as one loop.
#pragma once

#include <span>

#include "schedule/rewrite/changed_graph.h"

namespace tiny {

// One loop for all that see the same, begin with the same states and make the same of them: it has
// the outputs of all.  A gradient asks for values of the steps that the forward pass does not keep,
// by a loop that makes the forward pass again.  Not where one needs what another has made.
ChangedGraph same_loops(std::span<const UOp> roots);

}  // namespace tiny
