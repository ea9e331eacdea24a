// Rows of given memory that windows move along by more than one element, of which nothing is
// repeated (a depthwise convolution at a graph's border): where a copy with channels last costs
// less than lanes that lie apart, that is what is read.
#pragma once

#include <span>

#include "ir/target.h"
#include "schedule/rewrite/changed_graph.h"

namespace tiny {

ChangedGraph copy_windowed(std::span<const UOp> roots, const Target& target);

}  // namespace tiny
