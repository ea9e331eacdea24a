// Arithmetic on values of any dtype but masks, by where they are kept.
#pragma once

#include "ir/op.h"
#include "render/x86/select/emitter.h"

namespace tiny::x86 {

// kNoReg where the target has no such instruction.
VReg binary(Emitter& e, Op op, DType dtype, VReg a, const Operand& b, VReg dst = kNoReg);
VReg unary(Emitter& e, Op op, DType dtype, VReg a);

}  // namespace tiny::x86
