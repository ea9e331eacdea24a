// Reductions along axes on which all elements are one: a sum of n equal terms is n times the term,
// a maximum is the term, and nothing is walked.  Not when tensors are made: a gradient may be asked
// for by each of the terms.
#pragma once

#include <span>

#include "ir/uop.h"
#include "schedule/rewrite/changed_graph.h"

namespace tiny {

bool is_uniform_reduction(const UOp& u);

ChangedGraph fold_uniform_reductions(std::span<const UOp> roots);

}  // namespace tiny
