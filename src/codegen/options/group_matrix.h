// The TC option: three ranges of the sizes of a row of the matrix table become one product of small
// matrices, which the threads of a warp form together (base/matrix.h).
//
// A sum over the steps k of a(m, k) * b(k, n) becomes one over k and over columns c of
// MatrixTerm(a, b, n, c), which is a(m, k) * b(k, c) where c is n, and 0 elsewhere: the operand b
// has a column of its own, since a thread has other columns of b than of the result.  m is split
// into halves (registers) and threads along axis 1, n into threads along axis 0 and lanes, k into
// halves, threads along axis 0 and the steps of a word, c is along axis 1.
//
// Of rows that several warps form together of what the group shares, n and c are more: blocks of
// the columns that a thread has two of, which are registers of n, and no thread's of c.
//
// What a TILE leaves out of the steps is no guard any more, since all threads of a warp come to the
// product: an operand that is not zero there by its own load is made so.
#pragma once

#include "codegen/options/options.h"

namespace tiny {

// The kernel after `option`; Error{InvalidArgument} says why it does not fit.
Kernel apply_matrix(const Kernel& kernel, const Option& option);

}  // namespace tiny
