// Conversions between numbers.  Floats become integers by truncation, saturating, NaN to 0.
#pragma once

#include "render/x86/select/emitter.h"

namespace tiny::x86 {

bool half_float(DType d);
VReg cast_scalar(Emitter& e, DType from, DType to, VReg a);
// kNoReg where the target has no such instruction or an intermediate does not fit a register.
VReg cast_vector(Emitter& e, DType from, DType to, VReg a);

}  // namespace tiny::x86
