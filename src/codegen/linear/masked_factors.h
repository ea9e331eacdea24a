// Lanes that a sum leaves out: where(mask, a * b, 0) + sum becomes a * b + sum of factors that are
// loaded under the mask and are zero elsewhere, whatever memory has there.  A step is one fma then.
#pragma once

#include "ir/linear.h"

namespace tiny {

void mask_factors(LinearProgram& program);

}  // namespace tiny
