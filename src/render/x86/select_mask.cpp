// Vectors of bools: comparisons, logic, picking, and their forms in memory and in integer
// registers.
#include <algorithm>
#include <bit>

#include "render/x86/selector.h"

namespace tiny::x86 {

namespace {

size_t log_of(int64_t size) {
  return static_cast<size_t>(std::countr_zero(static_cast<uint64_t>(size)));
}

// The immediate of vcmp: ordered, quiet; NotEqual is true of NaN.
int64_t float_predicate(Op op) {
  switch (op) {
    case Op::Less:
      return 0x11;
    case Op::LessEqual:
      return 0x12;
    case Op::Equal:
      return 0x00;
    default:
      return 0x04;
  }
}

int64_t int_predicate(Op op) {
  switch (op) {
    case Op::Less:
      return 1;
    case Op::LessEqual:
      return 2;
    case Op::Equal:
      return 0;
    default:
      return 4;
  }
}

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

int64_t Selector::mask_lane(LinearId id) const {
  return is_mask(op(id).dtype) && !avx512_ ? facts_[id].lane : 0;
}

// One bit a lane, if the mask is known.
std::optional<uint64_t> Selector::constant_mask(LinearId id) const {
  const LinearOp& o = op(id);
  const uint64_t all = o.dtype.lanes == 64 ? ~uint64_t{0} : (uint64_t{1} << o.dtype.lanes) - 1;
  if (o.op == Op::Const) return o.imm ? all : 0;
  if (o.op == Op::Broadcast && is_const(o.src[0])) return source(o, 0).imm ? all : 0;
  if (o.op != Op::LaneRange || !is_const(o.src[0]) || !is_const(o.src[1])) return std::nullopt;
  const int64_t lanes = o.dtype.lanes;
  const auto low = std::clamp<int64_t>(const_value(o.src[0]), 0, lanes);
  const auto high = std::clamp<int64_t>(const_value(o.src[1]), low, lanes);
  const auto below = [](int64_t n) { return n == 64 ? ~uint64_t{0} : (uint64_t{1} << n) - 1; };
  return below(high) & ~below(low);
}

// Made before the loop that uses it, as other constants are.
VReg Selector::make_constant_mask(uint64_t bits, int64_t lanes, int64_t lane) {
  if (!avx512_) {
    const int64_t width = mask_width(lanes, lane);
    std::vector<std::byte> bytes(static_cast<size_t>(width), std::byte{0});
    for (int64_t b = 0; b < lanes * lane; ++b)
      if (bits >> (b / lane) & 1) bytes[static_cast<size_t>(b)] = std::byte{0xFF};
    return pool_reg(pool_bytes(std::move(bytes)), width);
  }
  const auto [at, fresh] = constant_masks_.try_emplace({loop_, bits}, kNoReg);
  if (!fresh) return at->second;
  Inst value;
  value.op = Opcode::IMoveImm;
  value.width = value.width2 = 8;
  value.dst = int_reg();
  value.imm = static_cast<int64_t>(bits);
  value.origin = at_;
  preheaders_[loop_].push_back(value);
  Inst mask = value;
  mask.op = Opcode::KFromInt;
  mask.src[0] = value.dst;
  mask.dst = mask_reg();
  mask.imm = 0;
  preheaders_[loop_].push_back(mask);
  return at->second = mask.dst;
}

VReg Selector::mask_in(LinearId id, int64_t lane) {
  if (const auto bits = constant_mask(id))
    return make_constant_mask(*bits, op(id).dtype.lanes, lane);
  const VReg reg = use(id);
  return avx512_ ? reg : convert_mask(reg, op(id).dtype.lanes, values_[id].lane, lane);
}

VReg Selector::convert_mask(VReg mask, int64_t lanes, int64_t from, int64_t to) {
  if (avx512_ || from == to) return mask;
  const DType narrow[] = {kInt8, kInt16, kInt32, kInt64};
  return resize_ints(narrow[log_of(from)].with_lanes(lanes), narrow[log_of(to)].with_lanes(lanes),
                     mask);
}

VReg Selector::compare(Op op, DType dtype, VReg a, const Operand& b) {
  const int64_t width = width_of(dtype);
  if (dtype.is_float()) {
    if (dtype.bytes() < 4) unsupported("floats of 16 bits are compared as float32");
    if (!avx512_)
      return rrmi(dtype.bytes() == 4 ? Opcode::vcmpps : Opcode::vcmppd, width, a, b,
                  float_predicate(op));
    return krm(dtype.bytes() == 4 ? Opcode::KCmpps : Opcode::KCmppd, width, a, b,
               float_predicate(op));
  }
  if (!avx512_) return compare_int_avx2(op, dtype, a, as_reg(dtype, b));
  constexpr Opcode kSigned[] = {Opcode::vpcmpb, Opcode::vpcmpw, Opcode::vpcmpd, Opcode::vpcmpq};
  constexpr Opcode kUnsigned[] = {Opcode::vpcmpub, Opcode::vpcmpuw, Opcode::vpcmpud,
                                  Opcode::vpcmpuq};
  return krm((dtype.is_signed() ? kSigned : kUnsigned)[log_of(dtype.bytes())], width, a, b,
             int_predicate(op));
}

// AVX2 has equality and signed greater-than.
VReg Selector::compare_int_avx2(Op op, DType dtype, VReg a, VReg b) {
  constexpr Opcode kEqual[] = {Opcode::vpcmpeqb, Opcode::vpcmpeqw, Opcode::vpcmpeqd,
                               Opcode::vpcmpeqq};
  constexpr Opcode kGreater[] = {Opcode::vpcmpgtb, Opcode::vpcmpgtw, Opcode::vpcmpgtd,
                                 Opcode::vpcmpgtq};
  const int64_t width = width_of(dtype), size = dtype.bytes();
  if (op == Op::Equal || op == Op::NotEqual) {
    const VReg equal = rrm(kEqual[log_of(size)], width, a, b);
    return op == Op::Equal ? equal : mask_not(width, equal);
  }
  if (!dtype.is_signed()) {
    const VReg sign = lanes_const(uint64_t{1} << (8 * size - 1), size, width);
    a = rrm(Opcode::vxorps, width, a, sign);
    b = rrm(Opcode::vxorps, width, b, sign);
  }
  if (op == Op::Less) return rrm(kGreater[log_of(size)], width, b, a);
  return mask_not(width, rrm(kGreater[log_of(size)], width, a, b));
}

VReg Selector::mask_binary(Op op, int64_t width, VReg a, VReg b, VReg dst) {
  const Op logic = logic_of(op);
  if (!avx512_) {
    const Opcode opcode = logic == Op::And  ? Opcode::vandps
                          : logic == Op::Or ? Opcode::vorps
                                            : Opcode::vxorps;
    return rrm(opcode, width, a, b, dst);
  }
  if (dst == kNoReg) dst = mask_reg();
  const Opcode opcode = logic == Op::And  ? Opcode::KAnd
                        : logic == Op::Or ? Opcode::KOr
                                          : Opcode::KXor;
  emit(opcode, 8, dst, a, b);
  return dst;
}

VReg Selector::mask_not(int64_t width, VReg a) {
  if (!avx512_) return rrm(Opcode::vxorps, width, a, lanes_const(~uint64_t{0}, 4, width));
  const VReg dst = mask_reg();
  emit(Opcode::KNot, 8, dst, a);
  return dst;
}

VReg Selector::pick(DType dtype, VReg mask, VReg yes, VReg no) {
  const int64_t width = width_of(dtype);
  const VReg dst = vec_reg(width);
  if (avx512_) {
    constexpr Opcode kBlend[] = {Opcode::vpblendmb, Opcode::vpblendmw, Opcode::vblendmps,
                                 Opcode::vblendmpd};
    emit(kBlend[log_of(dtype.bytes())], width, dst, no, yes).mask = mask;
  } else {
    emit(Opcode::VBlend, width, dst, no, yes, mask).width2 = static_cast<uint8_t>(dtype.bytes());
  }
  return dst;
}

VReg Selector::scalar_mask(VReg condition) {
  if (avx512_) return mask_from_bits(condition, 1, 0);
  const VReg all = int_reg(), mask = vec_reg(16);
  emit(Opcode::INeg, 8, all, condition);
  emit(Opcode::VFromInt, 16, mask, all).width2 = 8;
  return mask;
}

VReg Selector::keep(DType dtype, VReg mask, VReg value) {
  const int64_t width = width_of(dtype);
  if (!avx512_) return rrm(Opcode::vandps, width, mask, value);
  const VReg dst = vec_reg(width);
  Inst& i = emit(Opcode::VMove, width, dst, value);
  i.mask = mask;
  i.flags |= kZeroing;
  i.width2 = static_cast<uint8_t>(dtype.bytes());
  return dst;
}

// One bit a lane in an integer register; bits beyond the lanes are undefined.
VReg Selector::mask_bits(VReg mask, int64_t lanes, int64_t lane) {
  const VReg dst = int_reg();
  if (avx512_) {
    emit(Opcode::KToInt, 8, dst, mask);
    return dst;
  }
  if (lane == 2) {
    mask = convert_mask(mask, lanes, 2, 1);
    lane = 1;
  }
  emit(Opcode::VMoveMask, mask_width(lanes, lane), dst, mask).width2 = static_cast<uint8_t>(lane);
  return dst;
}

VReg Selector::mask_from_bytes(VReg bytes, int64_t lanes, int64_t lane) {
  const int64_t width = width_for(lanes);
  if (avx512_) return krm(Opcode::vptestmb, width, bytes, bytes, 0);
  const VReg mask = rrm(Opcode::vpsubb, width, lanes_const(0, 4, width), bytes);
  return convert_mask(mask, lanes, 1, lane);
}

VReg Selector::mask_to_bytes(VReg mask, int64_t lanes, int64_t lane) {
  const DType bytes = kUInt8.with_lanes(lanes);
  return keep(bytes, convert_mask(mask, lanes, lane, 1), lanes_const(1, 1, width_of(bytes)));
}

VReg Selector::mask_from_bits(VReg bits, int64_t lanes, int64_t lane) {
  if (avx512_) {
    const VReg dst = mask_reg();
    emit(Opcode::KFromInt, 8, dst, bits);
    return dst;
  }
  // Byte l of the vector gets byte l/8 of the bits, keeps bit l%8 of it, and compares.
  const int64_t width = width_for(lanes);
  std::vector<std::byte> from(static_cast<size_t>(width)), bit(static_cast<size_t>(width));
  for (size_t l = 0; l < from.size(); ++l) {
    from[l] = static_cast<std::byte>(l / 8);
    bit[l] = static_cast<std::byte>(1 << (l % 8));
  }
  const VReg low = vec_reg(16);
  emit(Opcode::VFromInt, 16, low, bits).width2 = 4;
  const VReg spread = rrm(Opcode::vpshufb, width, rr(Opcode::vpbroadcastd, width, low, 16),
                          pool_reg(pool_bytes(from), width));
  const VReg select_bit = pool_reg(pool_bytes(bit), width);
  const VReg mask =
      rrm(Opcode::vpcmpeqb, width, rrm(Opcode::vandps, width, spread, select_bit), select_bit);
  return convert_mask(mask, lanes, 1, lane);
}

void Selector::select_compare(LinearId id) {
  const LinearOp& o = op(id);
  const DType d = source(o, 0).dtype;
  if (is_mask(d)) return select_mask_logic(id);
  if (in_int(d)) {
    const Facts& f = facts_[id];
    if (f.uses == 1 && op(f.user).op == Op::If && facts_[f.user].epoch == f.epoch + 1) {
      values_[id].deferred = true;  // compared by the jump
      return;
    }
    const VReg a = use(o.src[0]);
    return set(id, int_compare(o.op, d, a, use_operand(o.src[1])));
  }
  const VReg a = use(o.src[0]);
  if (d.lanes > 1)
    return set(id, compare(o.op, d, a, use_operand(o.src[1])), avx512_ ? 0 : d.bytes());
  if (d.bytes() < 4) unsupported("floats of 16 bits are compared as float32");
  const VReg b = use(o.src[1]);
  const VReg dst = int_reg();
  if (o.op == Op::Less || o.op == Op::LessEqual) {
    Inst& i = emit(Opcode::FSetCompare, 16, dst, b, a);
    i.width2 = static_cast<uint8_t>(d.bytes());
    i.cond = o.op == Op::Less ? Cond::A : Cond::AE;
    return set(id, dst);
  }
  const bool single = d.bytes() == 4;
  if (avx512_) {
    emit(Opcode::KToInt, 8, dst,
         krm(single ? Opcode::KCmpss : Opcode::KCmpsd, 16, a, b, float_predicate(o.op)));
    return set(id, dst);
  }
  const VReg mask = rrmi(single ? Opcode::vcmpss : Opcode::vcmpsd, 16, a, b, float_predicate(o.op));
  emit(Opcode::VToInt, 16, dst, mask).width2 = 4;
  set(id, int_plain(Opcode::IAnd, 4, dst, Operand::immediate(1)));
}

void Selector::select_where(LinearId id) {
  const LinearOp& o = op(id);
  const DType d = o.dtype;
  if (is_mask(d)) return select_mask_logic(id);
  if (in_int(d)) {
    const VReg c = use(o.src[0]);
    const VReg a = use(o.src[1]);
    return set(id, int_select(c, a, use(o.src[2])));
  }
  VReg mask = kNoReg;
  if (d.lanes > 1) {
    mask = mask_in(o.src[0], d.bytes());
  } else {
    mask = scalar_mask(use(o.src[0]));
  }
  const LinearOp* no = &source(o, 2);
  if (no->op == Op::Broadcast) no = &source(*no, 0);
  const VReg yes = use(o.src[1]);
  if (no->op == Op::Const && no->imm == 0) return set(id, keep(d, mask, yes));
  set(id, pick(d, mask, yes, use(o.src[2])));
}

void Selector::select_mask_logic(LinearId id) {
  const LinearOp& o = op(id);
  const int64_t lane = mask_lane(id), width = mask_width(o.dtype.lanes, lane);
  const auto in = [&](size_t s) { return mask_in(o.src[s], lane); };
  const VReg a = in(0);
  switch (o.op) {
    case Op::Neg:
    case Op::Abs:
    case Op::Cast:  // the value itself, which an accumulator's register will not keep
      return set(id, move(avx512_ ? RegClass::Mask : RegClass::Vec, width, a), lane);
    case Op::Not:
      return set(id, mask_not(width, a), lane);
    case Op::Where: {
      const VReg yes = mask_binary(Op::And, width, a, in(1));
      const VReg no = mask_binary(Op::And, width, mask_not(width, a), in(2));
      return set(id, mask_binary(Op::Or, width, yes, no), lane);
    }
    case Op::Less:
      return set(id, mask_binary(Op::And, width, mask_not(width, a), in(1)), lane);
    case Op::LessEqual:
      return set(id, mask_binary(Op::Or, width, mask_not(width, a), in(1)), lane);
    case Op::Equal:
      return set(id, mask_not(width, mask_binary(Op::Xor, width, a, in(1))), lane);
    case Op::NotEqual:
      return set(id, mask_binary(Op::Xor, width, a, in(1)), lane);
    case Op::Add:
    case Op::Sub:
    case Op::Mul:
    case Op::Max:
    case Op::Min:
    case Op::And:
    case Op::Or:
    case Op::Xor:
      return set(id, mask_binary(o.op, width, a, in(1)), lane);
    default:
      unsupported("is not an op of bools");
  }
}

VReg Selector::fold_mask(Op op, int64_t lanes, VReg mask, int64_t lane) {
  const Op logic = logic_of(op);
  VReg bits = mask_bits(mask, lanes, lane);
  if (logic == Op::And) {
    const VReg inverted = int_reg();
    emit(Opcode::INot, 8, inverted, bits);
    bits = inverted;
  }
  bits = int_plain(Opcode::IShl, 8, bits, Operand::immediate(64 - lanes));
  if (logic == Op::Xor) {
    const VReg count = int_reg();
    emit(Opcode::IPopcnt, 8, count, bits);
    return int_plain(Opcode::IAnd, 4, count, Operand::immediate(1));
  }
  const VReg dst = int_reg();
  Inst& i = emit(Opcode::ISetCompare, 8, dst, bits);
  put(i, 1, Operand::immediate(0));
  i.cond = logic == Op::And ? Cond::E : Cond::NE;
  return dst;
}

void Selector::select_lane_range(LinearId id) {
  if (constant_mask(id)) return;  // made where it is used
  const LinearOp& o = op(id);
  const int64_t lanes = o.dtype.lanes, lane = mask_lane(id), width = mask_width(lanes, lane);
  const auto clamped = [&](LinearId from) {
    if (is_const(from)) return int_const(std::clamp<int64_t>(const_value(from), 0, lanes));
    const VReg low = int_binary(Op::Max, kInt64, use(from), int_const(0));
    return int_binary(Op::Min, kInt64, low, int_const(lanes));
  };
  const bool from_start = is_const(o.src[0]) && const_value(o.src[0]) <= 0;
  const VReg high = clamped(o.src[1]);
  const VReg low = from_start ? kNoReg : clamped(o.src[0]);
  if (avx512_) {
    const auto ones_below = [&](VReg n) {
      const VReg dst = int_reg();
      emit(Opcode::IBzhi, 8, dst, int_const(-1), n);
      return dst;
    };
    VReg bits = ones_below(high);
    if (!from_start) {
      const VReg outside = int_reg();
      emit(Opcode::INot, 8, outside, ones_below(low));
      bits = int_plain(Opcode::IAnd, 8, bits, outside);
    }
    return set(id, mask_from_bits(bits, lanes, lane));
  }
  std::vector<std::byte> numbers(static_cast<size_t>(width), std::byte{0});
  for (int64_t l = 0; l < lanes; ++l)
    numbers[static_cast<size_t>(l * lane)] = static_cast<std::byte>(l);
  const VReg iota = pool_reg(pool_bytes(std::move(numbers)), width);
  constexpr Opcode kSpread[] = {Opcode::vpbroadcastb, Opcode::vpbroadcastw, Opcode::vpbroadcastd,
                                Opcode::vpbroadcastq};
  constexpr Opcode kGreater[] = {Opcode::vpcmpgtb, Opcode::vpcmpgtw, Opcode::vpcmpgtd,
                                 Opcode::vpcmpgtq};
  const auto above = [&](VReg bound) {
    const VReg scalar = vec_reg(16);
    emit(Opcode::VFromInt, 16, scalar, bound).width2 = 8;
    return rrm(kGreater[log_of(lane)], width, rr(kSpread[log_of(lane)], width, scalar, 16), iota);
  };
  VReg mask = above(high);
  if (!from_start) mask = rrm(Opcode::vandnps, width, above(low), mask);
  set(id, mask, lane);
}

}  // namespace tiny::x86
