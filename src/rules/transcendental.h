// float32 and float64 functions in elementary ops: what decompositions.cpp names for each op.  The
// argument has one of those dtypes.  The greatest error, in ulp, is said beside each for float32,
// float64; NaN, infinities, zeros and denormals are as in C's <math.h>, but for an exponential
// whose argument is never above 0 (rules/sign.h): where that is below -87 (float64: -708) it is 0,
// since a denormal costs some processors a hundred cycles.
#pragma once

#include "ir/uop.h"

namespace tiny {

UOp exp_in_steps(const UOp& x);    // 1, 1
UOp exp_with_scale(const UOp& x);  // the same bits, with Op::Scale
// e^x as it is to be added to `term`, beside which denormals vanish: made without them.  None if
// they are not made anyway, or do not vanish.
UOp exp_before_sum(const UOp& x, double term);
UOp log_in_steps(const UOp& x);                // 1, 1
UOp tanh_in_steps(const UOp& x);               // 4, 3
UOp erf_in_steps(const UOp& x);                // 2, 3
UOp pow_in_steps(const UOp& x, const UOp& y);  // 2, 3
UOp sin_in_steps(const UOp& x);                // 2, 3, of any argument
UOp cos_in_steps(const UOp& x);                // 2, 3, of any argument

}  // namespace tiny
