// Passes over the linear program, in the order in which they run.
#pragma once

#include "ir/linear.h"

namespace tiny {

// a + (-b) becomes a - b: the same bits, one op less.
void form_sub(LinearProgram& program);

// What a float sum adds to its accumulator becomes fma(a, b, sum) where it is a product that nobody
// else reads: a step of a reduction, which no kernel computes twice.  All other fma are decided on
// the tensor graph (schedule/rewrite/form_fma.h), so every renderer and every kernel gives the same
// bits.
void form_fma(LinearProgram& program);

// One op for those of a block (and the blocks in it) that compute the same; loads, if nothing is
// stored between them and no loop begins or ends.
void merge_equal(LinearProgram& program);

// Drops values that nothing reads.
void remove_dead(LinearProgram& program);

}  // namespace tiny
