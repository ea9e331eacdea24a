// Comparisons of floats and of vectors.
#pragma once

#include "ir/op.h"
#include "render/x86/select/emitter.h"

namespace tiny::x86 {

// Of vectors: a mask, on AVX2 in lanes of `dtype`.
VReg compare(Emitter& e, Op op, DType dtype, VReg a, const Operand& b);
// Of floats of one lane: a bool.
VReg compare_floats(Emitter& e, Op op, DType dtype, VReg a, VReg b);

}  // namespace tiny::x86
