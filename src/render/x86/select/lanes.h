// Between the lanes of vectors: spreading one, taking them apart, folding them into one.
#pragma once

#include <vector>

#include "ir/op.h"
#include "render/x86/select/emitter.h"

namespace tiny::x86 {

// The instruction that gives every lane of `size` bytes one from memory.
Opcode broadcast_opcode(int64_t size, int64_t width);
VReg broadcast(Emitter& e, DType dtype, VReg scalar);
VReg iota(Emitter& e, DType dtype, uint64_t start, int64_t step);
// All lanes combined; one of an op without instructions for vectors too.
VReg fold(Emitter& e, Op op, DType dtype, VReg a);
// 16 bytes of a vector of `width`.
VReg piece_of(Emitter& e, VReg vector, int64_t width, int64_t piece);
VReg upper_half(Emitter& e, DType dtype, VReg a);
// The bits of one lane in an integer register, zero-extended.
VReg lane_bits(Emitter& e, VReg vector, int64_t width, int64_t size, int64_t lane);
// One lane as a value.
VReg extract(Emitter& e, DType dtype, VReg vector, int64_t lane);
VReg assemble(Emitter& e, DType dtype, const std::vector<VReg>& lanes);
// A vector from its pieces of 16 bytes.
VReg join(Emitter& e, int64_t width, const std::vector<VReg>& pieces);

}  // namespace tiny::x86
