// Constants that contractions read, laid out once as their kernels read them: the columns that
// lanes run along side by side, in blocks of a register tile, steps of the reduction after each
// other.
//
//   weight [n, k]  ->  reshape(permute(C)),  C = contiguous [n / block, k, block]
//
// What meets the product of two inputs elementwise (a bias of attention's scores) lies as the
// product does.  The result has the same values.  What is new depends on constants alone, so that a
// program computes it once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cost/machine.h"
#include "ir/uop.h"
#include "schedule/rewrite/changed_graph.h"

namespace tiny {

// `is_constant` says by id which nodes with memory hold what never changes, `varies` which nodes
// inputs reach.
ChangedGraph pack_constants(std::span<const UOp> roots, const Machine& target,
                            const std::vector<uint8_t>& is_constant,
                            const std::vector<uint8_t>& varies);

}  // namespace tiny
