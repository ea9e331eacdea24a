// Sums of products that are products of sums: what only one factor depends on is summed in it.
#pragma once

#include <span>

#include "schedule/rewrite/changed_graph.h"

namespace tiny {

// Where a factor of a summed product is the same along some of the summed axes, the other factor is
// summed along these first (distributivity): sum over a, c of f[a, c] g[c, j] is the sum over c of
// (sum over a of f[a, c]) g[c, j], of a c + c j steps for a c j.  The gradient of what a product's
// rows are added to, summed over the rows, is such a sum.  Only where that saves most of the steps.
ChangedGraph factor_sums(std::span<const UOp> roots);

}  // namespace tiny
