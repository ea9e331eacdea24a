// The STREAM option: reductions along ranges of one size that depend on each other (a maximum, the
// sum of exp(x - maximum), the sum of exp(x - maximum) * v) run along one loop over blocks, each
// with what it is so far; nothing is kept of the blocks before.
//
// What a reduction folded with the earlier value of another is corrected: f(x, new) = f(x, old) * h
// where h does not depend on x.  h is found for products and quotients of exponentials, in whose
// exponents a maximum stands with a negative factor (or a minimum with a positive one), so that
// h <= 1; where it is not found, the reduction stays as it is.  Factors of a sum that do not depend
// on its range are taken out of it.  A running maximum counts as at least the lowest finite value
// in exponents; the last correction gives what an infinite one would.
#pragma once

#include "codegen/options/options.h"

namespace tiny {

// The kernel after `option`; Error{InvalidArgument} says why it does not fit.
Kernel apply_stream(const Kernel& kernel, const Option& option);

// The number of a range whose reduction others like it can run along with, one of them a product
// of columns; -1 if there is none.
int64_t streamed_range(const Kernel& kernel);

// Whether some rows need no more than the first blocks of such a range: a causal mask.
bool is_bounded_stream(const Kernel& kernel, int64_t number);

}  // namespace tiny
