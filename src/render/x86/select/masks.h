// Vectors of bools in registers: made, combined, picked by, and their forms in memory and in
// integer registers.  `lane` is the bytes of a lane of an AVX2 mask; AVX-512's have none.
#pragma once

#include "ir/op.h"
#include "render/x86/select/emitter.h"

namespace tiny::x86 {

inline int64_t mask_width(int64_t lanes, int64_t lane) {
  return width_for(lanes * lane);
}

// A known mask, one bit a lane: made before the loop that uses it, as other constants are.
VReg make_constant_mask(Emitter& e, uint64_t bits, int64_t lanes, int64_t lane);
VReg convert_mask(Emitter& e, VReg mask, int64_t lanes, int64_t from, int64_t to);
VReg mask_binary(Emitter& e, Op op, int64_t width, VReg a, VReg b, VReg dst = kNoReg);
VReg mask_not(Emitter& e, int64_t width, VReg a);
VReg fold_mask(Emitter& e, Op op, int64_t lanes, VReg mask, int64_t lane);  // a bool
// Without the lanes that a register has and the value has not.
VReg limit_mask(Emitter& e, VReg mask, int64_t lanes, int64_t lane);

VReg scalar_mask(Emitter& e, VReg condition);  // of the low lane, from a bool
VReg mask_from_bytes(Emitter& e, VReg bytes, int64_t lanes, int64_t lane);
VReg mask_to_bytes(Emitter& e, VReg mask, int64_t lanes, int64_t lane);
VReg mask_from_bits(Emitter& e, VReg bits, int64_t lanes, int64_t lane);
// One bit a lane in an integer register; bits beyond the lanes are undefined.
VReg mask_bits(Emitter& e, VReg mask, int64_t lanes, int64_t lane);

// Lanes of `dtype`, under a mask in its lanes.
VReg pick(Emitter& e, DType dtype, VReg mask, VReg yes, VReg no);
VReg keep(Emitter& e, DType dtype, VReg mask, VReg value);  // value where mask, else 0

}  // namespace tiny::x86
