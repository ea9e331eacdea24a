// Sums of products of bytes for targets that do not multiply bytes in words (ir/dot.h): of so few
// that floats hold them exactly, they are sums of floats, which every vector unit multiplies and
// adds in one instruction.
#pragma once

#include <span>

#include "cost/machine.h"
#include "ir/uop.h"
#include "schedule/rewrite/changed_graph.h"

namespace tiny {

ChangedGraph sum_in_floats(std::span<const UOp> roots, const Machine& target);

}  // namespace tiny
