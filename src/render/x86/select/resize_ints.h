// Vectors of integers in lanes of another width.
#pragma once

#include "render/x86/select/emitter.h"

namespace tiny::x86 {

// Widened by the sign of `from`, or cut to the low bytes.  The result must fit a register.
VReg resize_ints(Emitter& e, DType from, DType to, VReg a);

}  // namespace tiny::x86
