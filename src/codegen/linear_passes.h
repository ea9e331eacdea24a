// Passes over the linear program, in the order in which they run.
#pragma once

#include "ir/linear.h"

namespace tiny {

// a + (-b) becomes a - b: the same bits, one op less.
void form_sub(LinearProgram& program);

// a * b + c becomes fma(a, b, c) for floats whose product nobody else reads.  The only place where
// contraction happens: hence every renderer gives the same bits.
void form_fma(LinearProgram& program);

// One op for those of a block (and the blocks in it) that compute the same; loads, if nothing is
// stored between them and no loop begins or ends.
void merge_equal(LinearProgram& program);

// Drops values that nothing reads.
void remove_dead(LinearProgram& program);

}  // namespace tiny
