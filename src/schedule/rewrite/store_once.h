// Constants that repeat along an axis (a correction that is the same for every row) are stored
// once, and read as often.
#pragma once

#include <span>

#include "cost/machine.h"
#include "schedule/rewrite/changed_graph.h"
#include "schedule/rewrite/constant_values.h"

namespace tiny {

ChangedGraph store_once(std::span<const UOp> roots, const IsFixed& is_fixed, const Machine& target);

}  // namespace tiny
