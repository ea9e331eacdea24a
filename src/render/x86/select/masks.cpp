#include "render/x86/select/masks.h"

#include <utility>
#include <vector>

#include "render/x86/select/integers.h"
#include "render/x86/select/resize_ints.h"

namespace tiny::x86 {

namespace {

// What arithmetic on bools means: any sum but 0 is true.
Op logic_of(Op op) {
  switch (op) {
    case Op::Add:
    case Op::Or:
    case Op::Max:
      return Op::Or;
    case Op::Mul:
    case Op::And:
    case Op::Min:
      return Op::And;
    case Op::Sub:
    case Op::Xor:
      return Op::Xor;
    default:
      return op;
  }
}

}  // namespace

// Made before the loop that uses it, as other constants are.
VReg make_constant_mask(Emitter& e, uint64_t bits, int64_t lanes, int64_t lane) {
  if (!e.avx512()) {
    const int64_t width = mask_width(lanes, lane);
    std::vector<std::byte> bytes(static_cast<size_t>(width), std::byte{0});
    for (int64_t b = 0; b < lanes * lane; ++b)
      if (bits >> (b / lane) & 1) bytes[static_cast<size_t>(b)] = std::byte{0xFF};
    return e.pool_reg(e.pool_bytes(std::move(bytes)), width);
  }
  return e.mask_const(bits);
}

VReg convert_mask(Emitter& e, VReg mask, int64_t lanes, int64_t from, int64_t to) {
  if (e.avx512() || from == to) return mask;
  const DType narrow[] = {kInt8, kInt16, kInt32, kInt64};
  return resize_ints(e, narrow[log_of(from)].with_lanes(lanes),
                     narrow[log_of(to)].with_lanes(lanes), mask);
}

VReg mask_binary(Emitter& e, Op op, int64_t width, VReg a, VReg b, VReg dst) {
  const Op logic = logic_of(op);
  if (!e.avx512()) {
    const Opcode opcode = logic == Op::And  ? Opcode::vandps
                          : logic == Op::Or ? Opcode::vorps
                                            : Opcode::vxorps;
    return e.rrm(opcode, width, a, b, dst);
  }
  if (dst == kNoReg) dst = e.mask_reg();
  const Opcode opcode = logic == Op::And  ? Opcode::KAnd
                        : logic == Op::Or ? Opcode::KOr
                                          : Opcode::KXor;
  e.emit(opcode, 8, dst, a, b);
  return dst;
}

VReg mask_not(Emitter& e, int64_t width, VReg a) {
  if (!e.avx512()) return e.rrm(Opcode::vxorps, width, a, e.lanes_const(~uint64_t{0}, 4, width));
  const VReg dst = e.mask_reg();
  e.emit(Opcode::KNot, 8, dst, a);
  return dst;
}

VReg pick(Emitter& e, DType dtype, VReg mask, VReg yes, VReg no) {
  const int64_t width = width_of(dtype);
  const VReg dst = e.vec_reg(width);
  if (e.avx512()) {
    constexpr Opcode kBlend[] = {Opcode::vpblendmb, Opcode::vpblendmw, Opcode::vblendmps,
                                 Opcode::vblendmpd};
    e.emit(kBlend[log_of(dtype.bytes())], width, dst, no, yes).mask = mask;
  } else {
    e.emit(Opcode::VBlend, width, dst, no, yes, mask).width2 = static_cast<uint8_t>(dtype.bytes());
  }
  return dst;
}

VReg scalar_mask(Emitter& e, VReg condition) {
  if (e.avx512()) return mask_from_bits(e, condition, 1, 0);
  const VReg all = e.int_reg(), mask = e.vec_reg(16);
  e.emit(Opcode::INeg, 8, all, condition);
  e.emit(Opcode::VFromInt, 16, mask, all).width2 = 8;
  return mask;
}

VReg keep(Emitter& e, DType dtype, VReg mask, VReg value) {
  const int64_t width = width_of(dtype);
  if (!e.avx512()) return e.rrm(Opcode::vandps, width, mask, value);
  const VReg dst = e.vec_reg(width);
  Inst& i = e.emit(Opcode::VMove, width, dst, value);
  i.mask = mask;
  i.flags |= kZeroing;
  i.width2 = static_cast<uint8_t>(dtype.bytes());
  return dst;
}

// One bit a lane in an integer register; bits beyond the lanes are undefined.
VReg mask_bits(Emitter& e, VReg mask, int64_t lanes, int64_t lane) {
  const VReg dst = e.int_reg();
  if (e.avx512()) {
    e.emit(Opcode::KToInt, 8, dst, mask);
    return dst;
  }
  if (lane == 2) {
    mask = convert_mask(e, mask, lanes, 2, 1);
    lane = 1;
  }
  e.emit(Opcode::VMoveMask, mask_width(lanes, lane), dst, mask).width2 = static_cast<uint8_t>(lane);
  return dst;
}

VReg mask_from_bytes(Emitter& e, VReg bytes, int64_t lanes, int64_t lane) {
  const int64_t width = width_for(lanes);
  if (e.avx512()) return e.krm(Opcode::vptestmb, width, bytes, bytes, 0);
  const VReg mask = e.rrm(Opcode::vpsubb, width, e.lanes_const(0, 4, width), bytes);
  return convert_mask(e, mask, lanes, 1, lane);
}

VReg mask_to_bytes(Emitter& e, VReg mask, int64_t lanes, int64_t lane) {
  const DType bytes = kUInt8.with_lanes(lanes);
  return keep(e, bytes, convert_mask(e, mask, lanes, lane, 1),
              e.lanes_const(1, 1, width_of(bytes)));
}

VReg mask_from_bits(Emitter& e, VReg bits, int64_t lanes, int64_t lane) {
  if (e.avx512()) {
    const VReg dst = e.mask_reg();
    e.emit(Opcode::KFromInt, 8, dst, bits);
    return dst;
  }
  // Byte l of the vector gets byte l/8 of the bits, keeps bit l%8 of it, and compares.
  const int64_t width = width_for(lanes);
  std::vector<std::byte> from(static_cast<size_t>(width)), bit(static_cast<size_t>(width));
  for (size_t l = 0; l < from.size(); ++l) {
    from[l] = static_cast<std::byte>(l / 8);
    bit[l] = static_cast<std::byte>(1 << (l % 8));
  }
  const VReg low = e.vec_reg(16);
  e.emit(Opcode::VFromInt, 16, low, bits).width2 = 4;
  const VReg spread = e.rrm(Opcode::vpshufb, width, e.rr(Opcode::vpbroadcastd, width, low, 16),
                            e.pool_reg(e.pool_bytes(from), width));
  const VReg select_bit = e.pool_reg(e.pool_bytes(bit), width);
  const VReg mask =
      e.rrm(Opcode::vpcmpeqb, width, e.rrm(Opcode::vandps, width, spread, select_bit), select_bit);
  return convert_mask(e, mask, lanes, 1, lane);
}

VReg fold_mask(Emitter& e, Op op, int64_t lanes, VReg mask, int64_t lane) {
  const Op logic = logic_of(op);
  VReg bits = mask_bits(e, mask, lanes, lane);
  if (logic == Op::And) {
    const VReg inverted = e.int_reg();
    e.emit(Opcode::INot, 8, inverted, bits);
    bits = inverted;
  }
  bits = int_plain(e, Opcode::IShl, 8, bits, Operand::immediate(64 - lanes));
  if (logic == Op::Xor) {
    const VReg count = e.int_reg();
    e.emit(Opcode::IPopcnt, 8, count, bits);
    return int_plain(e, Opcode::IAnd, 4, count, Operand::immediate(1));
  }
  const VReg dst = e.int_reg();
  Inst& i = e.emit(Opcode::ISetCompare, 8, dst, bits);
  put(i, 1, Operand::immediate(0));
  i.cond = logic == Op::And ? Cond::E : Cond::NE;
  return dst;
}

// Lanes that a register has and the value has not must not be touched by a masked access.
VReg limit_mask(Emitter& e, VReg mask, int64_t lanes, int64_t lane) {
  if (lanes * lane >= 16) return mask;
  const auto bits = (int64_t{1} << lanes) - 1;
  if (e.avx512()) {
    const VReg all = mask_from_bits(e, e.int_const(bits), lanes, lane);
    return mask_binary(e, Op::And, 8, mask, all);
  }
  std::vector<std::byte> bytes(16, std::byte{0});
  for (int64_t i = 0; i < lanes * lane; ++i) bytes[static_cast<size_t>(i)] = std::byte{0xFF};
  return mask_binary(e, Op::And, 16, mask, e.pool_reg(e.pool_bytes(std::move(bytes)), 16));
}

}  // namespace tiny::x86
