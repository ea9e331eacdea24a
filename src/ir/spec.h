// What a graph may be after each stage, checked: the op table says which ops a stage may hold and
// what dtypes they take; this unit adds the laws of arguments and of sources.  The linear program
// has its own verifier (ir/linear.h), shapes have theirs (src/shape).
//
// A law that is broken is Error{Internal}: it names the pass that left the graph, the law and the
// node with its sources.  TINY_SPEC=1 has every pass checked.
#pragma once

#include <span>

#include "ir/uop.h"

namespace tiny {

// The laws of a tensor graph, for the roots and all below them.
void verify_tensor(std::span<const UOp> roots, const char* pass = "tensor");
void verify_tensor(const UOp& root, const char* pass = "tensor");

// The laws of a kernel, for its stores and checks and all below them.
void verify_kernel(std::span<const UOp> roots, const char* pass = "kernel");

// Those, and that rules/decompositions.h has been through: no transcendental op, and arithmetic
// only on types that targets compute in.
void verify_decomposed(std::span<const UOp> roots, const char* pass = "decompose");

}  // namespace tiny
