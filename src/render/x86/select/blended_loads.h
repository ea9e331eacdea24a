// AVX2: lanes a few elements apart, taken out of whole registers.
#pragma once

#include <optional>

#include "render/x86/select/lane_places.h"

namespace tiny::x86 {

// Lanes as many elements apart as `are_picked` says (ir/picked_lanes.h), under a mask if there is
// one; `known`: its bits, if they are constant.
VReg load_blended(Emitter& e, const LanePlaces& at, VReg mask, std::optional<uint64_t> known);

}  // namespace tiny::x86
