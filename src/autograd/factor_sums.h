// Sums of products that are products of sums: what only one factor depends on is summed in it.
#pragma once

#include "ir/uop.h"

namespace tiny {

// A sum of products, of which each factor is summed first along those of the summed axes along
// which the other is the same (distributivity): sum over a, c of f[a, c] g[c, j] is the sum over c
// of (sum over a of f[a, c]) g[c, j], of a c + c j steps for a c j.  The gradient of a bias that is
// added to the rows that a product has is such a sum.  A product's sum as it is unless that saves
// most of the steps.  Of values that are not finite the result is not finite either way, but may be
// infinite for NaN: so this is for gradients, whose formula is ours.  Sums of a factor, and those
// that are none of products, are of elements as they lie below movement: the same rows have one
// sum.
UOp with_factors_summed(const UOp& sum);

}  // namespace tiny
