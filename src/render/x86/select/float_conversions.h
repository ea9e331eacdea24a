// Conversions between floats of different widths.
#pragma once

#include "render/x86/select/emitter.h"

namespace tiny::x86 {

VReg cast_float(Emitter& e, DType from, DType to, VReg a);

}  // namespace tiny::x86
