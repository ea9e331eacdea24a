// Arithmetic on floats of 32 and 64 bits, of one or more lanes.
#pragma once

#include "ir/op.h"
#include "render/x86/select/emitter.h"

namespace tiny::x86 {

// Whether arithmetic on such floats has instructions.
bool computes(DType d);
VReg float_binary(Emitter& e, Op op, DType dtype, VReg a, const Operand& b, VReg dst = kNoReg);
VReg float_unary(Emitter& e, Op op, DType dtype, VReg a);
// The instruction of Max or Min, which gives the second operand where either is NaN or both zero.
Opcode float_extreme_opcode(Op op, DType dtype);

}  // namespace tiny::x86
