#include "render/x86/select/stores.h"

#include "render/x86/select/integers.h"
#include "render/x86/select/lanes.h"
#include "render/x86/select/masks.h"

namespace tiny::x86 {

void store_plain(Emitter& e, DType dtype, const Mem& mem, VReg value) {
  const int64_t bytes = dtype.lanes * dtype.bytes();
  Inst& i = e.emit(in_int(dtype) ? Opcode::IStore : Opcode::VStore, bytes, kNoReg, value);
  i.mem = mem;
}

void store_masked(Emitter& e, DType dtype, const Mem& mem, VReg value, VReg mask) {
  mask = limit_mask(e, mask, dtype.lanes, dtype.bytes());
  Inst& i = e.emit(e.avx512() ? Opcode::VStore : Opcode::VMaskStore, width_of(dtype), kNoReg);
  i.width2 = static_cast<uint8_t>(dtype.bytes());
  i.mem = mem;
  if (e.avx512()) {
    i.src[0] = value;
    i.mask = mask;
  } else {
    i.src[0] = mask;
    i.src[1] = value;
  }
}

void store_lane(Emitter& e, const Mem& mem, VReg piece, int64_t size, int64_t lane) {
  Inst& i = e.emit(Opcode::VStoreLane, 16, kNoReg, piece);
  i.width2 = static_cast<uint8_t>(size);
  i.imm = lane;
  i.mem = mem;
}

namespace {

void store_lanes(Emitter& e, const LanePlaces& at, VReg value, VReg bits) {
  const int64_t size = at.dtype.bytes(), of_piece = 16 / size;
  VReg piece = value;
  for (int64_t l = 0; l < at.dtype.lanes; ++l) {
    if (l > 0 && l % of_piece == 0) piece = piece_of(e, value, width_of(at.dtype), l / of_piece);
    const uint32_t label = bits == kNoReg ? 0 : e.new_label();
    if (bits != kNoReg) skip_unless(e, bits, l, label);
    store_lane(e, lane_address(e, at, l), piece, size, l % of_piece);
    if (bits != kNoReg) e.emit(Opcode::Label, 0).label = label;
  }
}

void store_scatter(Emitter& e, const LanePlaces& at, VReg value, VReg mask) {
  const int64_t size = at.dtype.bytes(), lanes = at.dtype.lanes;
  VReg under = mask_from_bits(e, e.int_const((int64_t{1} << lanes) - 1), lanes, size);
  if (mask != kNoReg) under = mask_binary(e, Op::And, 8, mask, under);
  Inst& i = e.emit(Opcode::VScatter, width_for(8 * lanes), kNoReg, value, at.index, under);
  i.width2 = static_cast<uint8_t>(size);
  i.mem = at.mem;
  i.mem.scale = static_cast<uint8_t>(size);
}

}  // namespace

void store(Emitter& e, const LanePlaces& at, VReg value, VReg mask) {
  const int64_t size = at.dtype.bytes();
  const bool masked = mask != kNoReg;
  if (at.is_indexed() && e.avx512() && size >= 4) return store_scatter(e, at, value, mask);
  const bool apart = at.is_indexed() || (at.dtype.lanes > 1 && at.stride != 1);
  if (apart || (masked && !e.avx512() && size < 4))
    return store_lanes(e, at, value, masked ? mask_bits(e, mask, at.dtype.lanes, size) : kNoReg);
  if (masked) return store_masked(e, at.dtype, at.mem, value, mask);
  store_plain(e, at.dtype, at.mem, value);
}

}  // namespace tiny::x86
