// The order of products whose operands a group shares (base/matrix.h): they run beside the threads,
// which say when sums may change and wait for them.
//
//   before:  barrier; mma; set; mma; set; end of the loop
//   after:   fence of memory; barrier; fence of sums; mma; set; mma; set; commit; wait; end ..
//
// A group of products is what stands together in one block, up to where threads meet, fill what
// they share, or read a sum.  Groups that run_copies_ahead has ended are as it left them.
//
// needs: a grouped program.  runs here because: run_copies_ahead has moved what is computed, and
// merge_barriers has left the barriers that stay.
#pragma once

#include <span>

#include "base/matrix.h"
#include "ir/linear.h"

namespace tiny {

void order_products(LinearProgram& program);

// Whether the op is a product whose operands the group shares.
inline bool multiplies_shared(const LinearOp& op) {
  return op.op == Op::Mma && kMatrixRows[op.aux].shares_operands();
}

// Whether products before the op are a group without those behind it.
bool ends_products(std::span<const LinearOp> ops, const LinearOp& op);

}  // namespace tiny
