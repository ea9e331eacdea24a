// Where the lanes of an access to memory lie: `stride` elements from each other, or where the lanes
// of an index, 64-bit numbers of elements, say.
#pragma once

#include "render/x86/select/emitter.h"

namespace tiny::x86 {

struct LanePlaces {
  DType dtype;  // of all lanes
  Mem mem;      // of the first one, or without the index
  int64_t stride = 1;
  VReg index = kNoReg;

  bool is_indexed() const { return index != kNoReg; }
};

Mem offset_by(Emitter& e, const Mem& mem, int64_t bytes);
Mem lane_address(Emitter& e, const LanePlaces& at, int64_t lane);
// Jumps to the label unless the bit of the lane is set.
void skip_unless(Emitter& e, VReg bits, int64_t lane, uint32_t label);

inline bool fits32(int64_t n) {
  return n == static_cast<int32_t>(n);
}

}  // namespace tiny::x86
