// Long float sums in parts.  What a register has summed for kPartSteps steps is added to a sum in
// scratch, and the register begins anew; where that sum would be long too, so is it.  The error of
// a sum is that of the steps of one part and of the number of parts, not that of all steps.
//
// This is done to the loops of the linear program: whatever options made them, and whatever they
// add up.  A register is touched once a part, so the loops inside keep the registers that they
// have.
#pragma once

#include "ir/linear.h"

namespace tiny {

// How many numbers a part adds up, one after the other; a sum of no more is left whole.
inline constexpr int64_t kPartSteps = 256;

void sum_in_parts(LinearProgram& program);

}  // namespace tiny
