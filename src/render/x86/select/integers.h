// Integers and bools of one lane, in integer registers: 8- and 16-bit ones extended to 32 bits by
// their sign.
#pragma once

#include "ir/op.h"
#include "render/x86/select/emitter.h"

namespace tiny::x86 {

VReg int_binary(Emitter& e, Op op, DType dtype, VReg a, const Operand& b, VReg dst = kNoReg);
VReg int_unary(Emitter& e, Op op, DType dtype, VReg a);
VReg int_compare(Emitter& e, Op op, DType dtype, VReg a, const Operand& b);  // 0 or 1
VReg int_select(Emitter& e, VReg condition, VReg a, VReg b, VReg dst = kNoReg);
// One instruction, whatever becomes of the bits above the value's.
VReg int_plain(Emitter& e, Opcode opcode, int64_t width, VReg a, const Operand& b,
               VReg dst = kNoReg);
// The value as it is kept, extended.
VReg canonical(Emitter& e, DType dtype, VReg value, VReg dst = kNoReg);
// An operand of any dtype in a register.
VReg as_reg(Emitter& e, DType dtype, const Operand& b);
// When a comparison is true, or the first of two is the greater or lesser one.
Cond condition(Op op, DType dtype);

}  // namespace tiny::x86
