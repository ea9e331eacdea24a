// Joins of kernels: values that need no buffer between a kernel and its only reader.
#pragma once

#include "base/stop.h"
#include "ir/target.h"
#include "schedule/decide.h"

namespace tiny {

// Takes the buffer away from every stored value whose only reader can compute it in its own loops:
// largest first, until nothing changes.  A joined kernel has its reductions in its outer loops,
// keeps enough of their iterations, evaluates no contraction beside another reduction, and stays
// within the target's bounds.
void join_kernels(Decision& decision, std::span<const UOp> outputs, const Target& target,
                  const StopSignal* stop);

}  // namespace tiny
