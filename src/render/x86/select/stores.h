// Stores of values to memory: whole, under masks, by indices, lane by lane.
#pragma once

#include "render/x86/select/lane_places.h"

namespace tiny::x86 {

// Lanes side by side; a mask has lanes of the dtype.
void store_plain(Emitter& e, DType dtype, const Mem& mem, VReg value);
void store_masked(Emitter& e, DType dtype, const Mem& mem, VReg value, VReg mask);
// One lane of `size` bytes of a register's 16.
void store_lane(Emitter& e, const Mem& mem, VReg piece, int64_t size, int64_t lane);
// Lanes anywhere, under a mask if there is one.
void store(Emitter& e, const LanePlaces& at, VReg value, VReg mask);

}  // namespace tiny::x86
