// What is known of the sign of a float expression of a kernel, from its structure alone.
//
// A value minus the greatest of values that it is one of (the argument of a softmax's exponential)
// is the case that matters: functions of such arguments leave out what only overflow needs.
#pragma once

#include "ir/uop.h"

namespace tiny {

// Whether `x` is at most 0, or NaN, at every element.  False if it is not known.
bool never_positive(const UOp& x);

// Whether `value` is one of those that `reduce`, a Reduce, goes over: its operand with other ranges
// of the same sizes in place of those that it closes.
bool is_among_reduced(const UOp& value, const UOp& reduce);

}  // namespace tiny
