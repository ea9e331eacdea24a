#include "render/x86/select/lane_places.h"

#include "render/x86/select/integers.h"
#include "render/x86/select/lanes.h"

namespace tiny::x86 {

Mem lane_address(Emitter& e, const LanePlaces& at, int64_t lane) {
  if (!at.is_indexed()) return offset_by(e, at.mem, lane * at.stride * at.dtype.bytes());
  Mem m = at.mem;
  m.index = lane_bits(e, at.index, width_for(8 * at.dtype.lanes), 8, lane);
  m.scale = static_cast<uint8_t>(at.dtype.bytes());
  return m;
}

Mem offset_by(Emitter& e, const Mem& mem, int64_t bytes) {
  Mem m = mem;
  const int64_t disp = m.disp + bytes;
  if (fits32(disp)) {
    m.disp = static_cast<int32_t>(disp);
    return m;
  }
  m.base = int_plain(e, Opcode::IAdd, 8, mem.base, Operand(e.int_const(disp)));
  m.disp = 0;
  return m;
}

void skip_unless(Emitter& e, VReg bits, int64_t lane, uint32_t label) {
  const VReg shifted = int_plain(e, Opcode::IShr, 8, bits, Operand::immediate(lane));
  const VReg bit = int_plain(e, Opcode::IAnd, 4, shifted, Operand::immediate(1));
  e.emit(Opcode::JumpIfZero, 4, kNoReg, bit).label = label;
}

}  // namespace tiny::x86
