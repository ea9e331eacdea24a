// Arithmetic on vectors of integers.
#pragma once

#include "ir/op.h"
#include "render/x86/select/emitter.h"

namespace tiny::x86 {

// kNoReg where the target has no such instruction: it is done lane by lane.
VReg vector_int_binary(Emitter& e, Op op, DType dtype, VReg a, const Operand& b, VReg dst = kNoReg);
VReg vector_int_unary(Emitter& e, Op op, DType dtype, VReg a);

}  // namespace tiny::x86
