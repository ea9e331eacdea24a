// Results of loops, each as one node.
#pragma once

#include <span>

#include "schedule/rewrite/changed_graph.h"

namespace tiny {

bool is_result_of_loop(const UOp& node);

// One node for all that are the same result of a loop: a gradient asks for outputs again that the
// graph has, and a result has memory once.
ChangedGraph same_results(std::span<const UOp> roots);

}  // namespace tiny
