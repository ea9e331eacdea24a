// Loads of values from memory: whole, under masks, by strides, by indices, lane by lane.
#pragma once

#include <optional>

#include "render/x86/select/lane_places.h"

namespace tiny::x86 {

// Lanes side by side.
VReg load_plain(Emitter& e, DType dtype, const Mem& mem, VReg dst = kNoReg);
VReg load_masked(Emitter& e, DType dtype, const Mem& mem, VReg mask);
// Lanes anywhere, under a mask in lanes of the dtype if there is one; `known`: its bits, if they
// are constant.
VReg load(Emitter& e, const LanePlaces& at, VReg mask, std::optional<uint64_t> known);

}  // namespace tiny::x86
