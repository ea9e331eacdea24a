#include "render/x86/select/loads.h"

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "ir/picked_lanes.h"
#include "render/x86/select/blended_loads.h"
#include "render/x86/select/integers.h"
#include "render/x86/select/lanes.h"
#include "render/x86/select/masks.h"

namespace tiny::x86 {

VReg load_plain(Emitter& e, DType dtype, const Mem& mem, VReg dst) {
  const int64_t bytes = dtype.lanes * dtype.bytes();
  if (in_int(dtype)) {
    dst = e.or_int(dst);
    Inst& i = e.emit(Opcode::ILoad, int_width(dtype), dst);
    i.width2 = static_cast<uint8_t>(bytes);
    if (dtype.is_signed()) i.flags |= kSigned;
    i.mem = mem;
    return dst;
  }
  dst = e.or_vec(dst, width_for(bytes));
  e.emit(Opcode::VLoad, bytes, dst).mem = mem;
  return dst;
}

namespace {

// Whether lanes this far apart are taken out of whole registers.  What lies between the first and
// the last lane is in the same buffer.
bool loads_by_permuting(Emitter& e, DType dtype, int64_t stride) {
  const int64_t size = dtype.bytes(), bytes = dtype.lanes * size, apart = std::abs(stride);
  if (dtype.lanes == 1 || stride == 1 || bytes < 16) return false;
  return e.avx512() ? are_picked_by_twos(apart, dtype.lanes, size)
                    : apart > 1 && are_blended(apart, dtype.lanes, size);
}

// Whether lanes lie one after the other from the last on and are turned in a register of AVX2.
bool loads_turned(Emitter& e, DType dtype, int64_t stride, bool masked) {
  const int64_t size = dtype.bytes();
  return !e.avx512() && stride == -1 && dtype.lanes * size >= 16 && (!masked || size >= 4);
}

// Lanes of a register of 16 or 32 bytes, from the last to the first.
VReg turned(Emitter& e, VReg value, int64_t lanes, int64_t size) {
  constexpr int64_t kHalf = 16;  // bytes that are shuffled apart from others
  constexpr int64_t kHalvesSwapped = 0x4E;
  const int64_t bytes = lanes * size, width = width_for(bytes), half = std::min(bytes, kHalf);
  std::vector<std::byte> from(static_cast<size_t>(width), std::byte{0x80});  // zero
  for (int64_t b = 0; b < bytes; ++b) {
    const int64_t in_half = b % half, in_lane = in_half % size;
    from[static_cast<size_t>(b)] = static_cast<std::byte>(half - size - in_half + 2 * in_lane);
  }
  const VReg halves =
      e.rrm(Opcode::vpshufb, width, value, e.pool_reg(e.pool_bytes(std::move(from)), width));
  return width == kHalf ? halves : e.rri(Opcode::vpermq, width, halves, kHalvesSwapped);
}

// The mask of AVX-512 whose first lane is the last one's of this.
VReg turned_mask(Emitter& e, VReg mask, int64_t lanes, int64_t size) {
  return mask_from_bytes(e, turned(e, mask_to_bytes(e, mask, lanes, size), lanes, 1), lanes, size);
}

// The lanes' bits from `first` on, each at its place of `places`.
VReg spread_mask(Emitter& e, VReg bits, int64_t first, uint64_t places, int64_t n, int64_t size) {
  const VReg mine = int_plain(e, Opcode::IShr, 8, bits, Operand::immediate(first));
  const VReg spread = e.int_reg();
  e.emit(Opcode::IDeposit, 8, spread, mine, e.int_const(static_cast<int64_t>(places)));
  return mask_from_bits(e, spread, n, size);
}

}  // namespace

VReg load_masked(Emitter& e, DType dtype, const Mem& mem, VReg mask) {
  const int64_t size = dtype.bytes(), width = width_of(dtype);
  mask = limit_mask(e, mask, dtype.lanes, size);
  const VReg dst = e.vec_reg(width);
  Inst& i = e.emit(e.avx512() ? Opcode::VLoad : Opcode::VMaskLoad, width, dst);
  i.width2 = static_cast<uint8_t>(size);
  i.mem = mem;
  if (e.avx512()) {
    i.mask = mask;
    i.flags |= kZeroing;
  } else {
    i.src[0] = mask;
  }
  return dst;
}

namespace {

// Lane by lane: those that are `wanted`, a bit each, and of these such as `bits`, if there are any.
VReg load_lanes(Emitter& e, const LanePlaces& at, VReg bits, uint64_t wanted) {
  const int64_t size = at.dtype.bytes(), lanes = at.dtype.lanes, in_piece = 16 / size;
  std::vector<VReg> pieces;
  for (int64_t l = 0; l < lanes; ++l) {
    const bool is_wanted = (wanted >> l & 1) != 0;
    if (l % in_piece == 0) {
      pieces.push_back(e.vec_reg(16));
      if (is_wanted && bits == kNoReg && size >= 4) {  // the rest of the register becomes zero
        e.emit(Opcode::VLoad, size, pieces.back()).mem = lane_address(e, at, l);
        continue;
      }
      e.emit(Opcode::VZero, 16, pieces.back());
    }
    if (!is_wanted) continue;
    const uint32_t label = bits == kNoReg ? 0 : e.new_label();
    if (bits != kNoReg) skip_unless(e, bits, l, label);
    const Mem m = lane_address(e, at, l);
    Inst& i = e.emit(Opcode::VPinsr, 16, pieces.back(), pieces.back());
    i.width2 = static_cast<uint8_t>(size);
    i.imm = l % in_piece;
    i.mem = m;
    if (bits != kNoReg) e.emit(Opcode::Label, 0).label = label;
  }
  return join(e, width_of(at.dtype), pieces);
}

// As many loads as the stride, each a register's worth between the first lane and the last; then
// the lanes are picked out of two registers at a time.
VReg load_strided(Emitter& e, const LanePlaces& at, VReg mask, std::optional<uint64_t> known) {
  const int64_t size = at.dtype.bytes(), n = at.dtype.lanes, step = std::abs(at.stride),
                width = width_of(at.dtype);
  const Mem mem = at.stride < 0 ? lane_address(e, at, n - 1) : at.mem;
  if (!e.avx512()) return load_blended(e, at, mask, known);
  const auto element = [&](int64_t lane) { return (at.stride < 0 ? n - 1 - lane : lane) * step; };
  const auto start = [&](int64_t load) { return std::min(load * n, (n - 1) * (step - 1)); };
  const auto load_of = [&](int64_t lane) { return element(lane) / n; };
  const bool found = mask != kNoReg && !known;  // by the kernel
  const VReg in_order = found && at.stride < 0 ? turned_mask(e, mask, n, size) : mask;
  const VReg bits = found && step > 1 ? mask_bits(e, in_order, n, size) : kNoReg;
  VReg picked = kNoReg;
  for (int64_t load = 0; load < step; ++load) {
    const Mem m = offset_by(e, mem, start(load) * size);
    const VReg whole = e.vec_reg(width);
    VReg under = kNoReg;
    if (mask != kNoReg) {
      uint64_t places = 0, wanted = 0;
      int64_t first = n;  // in the order of the places
      for (int64_t l = 0; l < n; ++l)
        if (load_of(l) == load) {
          const uint64_t place = uint64_t{1} << (element(l) - start(load));
          places |= place;
          if (known && (*known >> l & 1)) wanted |= place;
          first = std::min(first, element(l) / step);
        }
      under = known       ? make_constant_mask(e, wanted, n, size)
              : step == 1 ? in_order
                          : spread_mask(e, bits, first, places, n, size);
    }
    Inst& i = e.emit(Opcode::VLoad, width, whole);
    i.mem = m;
    if (under != kNoReg) {
      i.mask = under;
      i.flags |= kZeroing;
      i.width2 = static_cast<uint8_t>(size);
    }
    if (load == 0) picked = e.move(RegClass::Vec, width, whole);
    if (load == 0 && step > 1) continue;
    std::vector<std::byte> numbers(static_cast<size_t>(width), std::byte{0});
    for (int64_t l = 0; l < n; ++l) {
      int64_t from = load <= 1 ? element(l) : l;  // picked before, or still in the first load
      if (load > 0 && load_of(l) == load) from = n + element(l) - start(load);
      if (load_of(l) > load) from = 0;
      numbers[static_cast<size_t>(l * size)] = static_cast<std::byte>(from);
    }
    const VReg index = e.pool_reg(e.pool_bytes(std::move(numbers)), width);
    e.emit(Opcode::VPermute2, width, picked, kNoReg, index, whole).width2 =
        static_cast<uint8_t>(size);
  }
  return picked;
}

VReg load_turned(Emitter& e, const LanePlaces& at, VReg mask) {
  const int64_t size = at.dtype.bytes(), n = at.dtype.lanes;
  const Mem mem = lane_address(e, at, n - 1);
  const VReg whole = mask == kNoReg ? load_plain(e, at.dtype, mem)
                                    : load_masked(e, at.dtype, mem, turned(e, mask, n, size));
  return turned(e, whole, n, size);
}

VReg load_gather(Emitter& e, const LanePlaces& at, VReg mask) {
  const int64_t size = at.dtype.bytes(), lanes = at.dtype.lanes;
  VReg under = kNoReg;  // the instruction clears it
  if (mask != kNoReg) {
    under = limit_mask(e, mask, lanes, size);
    if (under == mask)
      under = e.move(e.avx512() ? RegClass::Mask : RegClass::Vec, width_of(at.dtype), mask);
  } else if (e.avx512()) {
    under = mask_from_bits(e, e.int_const((int64_t{1} << lanes) - 1), lanes, size);
  } else if (lanes * size >= 16) {
    under = e.move(RegClass::Vec, width_of(at.dtype),
                   e.lanes_const(~uint64_t{0}, 1, width_of(at.dtype)));
  } else {
    under = limit_mask(e, e.lanes_const(~uint64_t{0}, 1, 16), lanes, size);
  }
  const VReg dst = e.vec_reg(width_of(at.dtype));
  e.emit(Opcode::VZero, 16, dst);
  Inst& i = e.emit(Opcode::VGather, width_for(8 * lanes), dst, kNoReg, at.index, under);
  i.width2 = static_cast<uint8_t>(size);
  i.mem = at.mem;
  i.mem.scale = static_cast<uint8_t>(size);
  return dst;
}

}  // namespace

VReg load(Emitter& e, const LanePlaces& at, VReg mask, std::optional<uint64_t> known) {
  const int64_t size = at.dtype.bytes();
  const bool masked = mask != kNoReg;
  if (at.is_indexed() && size >= 4) return load_gather(e, at, mask);
  if (!at.is_indexed() && loads_by_permuting(e, at.dtype, at.stride))
    return load_strided(e, at, mask, known);
  if (!at.is_indexed() && loads_turned(e, at.dtype, at.stride, masked))
    return load_turned(e, at, mask);
  const bool apart = at.is_indexed() || (at.dtype.lanes > 1 && at.stride != 1);
  if (apart || (masked && !e.avx512() && size < 4))
    return load_lanes(e, at, masked && !known ? mask_bits(e, mask, at.dtype.lanes, size) : kNoReg,
                      known.value_or(~uint64_t{0}));
  return masked ? load_masked(e, at.dtype, at.mem, mask) : load_plain(e, at.dtype, at.mem);
}

}  // namespace tiny::x86
