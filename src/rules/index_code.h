// The rules of index arithmetic that must look at sums of terms: named functions for the table in
// integers.cpp.  Each returns an equal expression in the form the table's header describes, or no
// node.  All assume int64 without overflow.
#pragma once

#include "ir/pattern.h"

namespace tiny {

// Terms in order; x // c * c + x % c and its like joined.
UOp ordered_sum(const Match& m);

// i * 2^c0, i // 2^c0, i % 2^k for a mask c0 = 2^k - 1.
UOp power_for_shift_left(const Match& m);
UOp division_for_shift_right(const Match& m);
UOp modulo_for_mask(const Match& m);

// i // j and i % j for a positive j: terms that j divides come out, terms too small to matter and
// common factors go.
UOp split_division(const Match& m);
UOp split_modulo(const Match& m);

// Decided, or with terms sorted by sign, divided by their common factor.
UOp ordered_comparison(const Match& m);
UOp ordered_equality(const Match& m);

// One of the operands if it is provably the result.
UOp decided_min_max(const Match& m);
UOp decided_where(const Match& m);

// Operands in order, each once; what the others imply is dropped.
UOp ordered_conjunction(const Match& m);
UOp ordered_disjunction(const Match& m);

// Joined terms of a sum, as ordered_sum does it.
Affine joined(Affine sum);

}  // namespace tiny
