// Casts and bitcasts.  Floats become integers by truncation, saturating, NaN to 0.
#include <bit>
#include <cmath>

#include "render/x86/selector.h"

namespace tiny::x86 {

namespace {

size_t log_of(int64_t size) {
  return static_cast<size_t>(std::countr_zero(static_cast<uint64_t>(size)));
}

bool half_float(DType d) {
  return d.is_float() && d.bytes() == 2;
}

constexpr int64_t kOrdered = 7, kNotLess = 0x1D;  // vcmp: neither is NaN; >=

}  // namespace

void Selector::select_cast(LinearId id) {
  const LinearOp& o = op(id);
  const DType from = source(o, 0).dtype, to = o.dtype;
  if (is_mask(from) || is_mask(to)) {
    if (is_mask(from) && is_mask(to)) return select_mask_logic(id);
    if (is_mask(from)) {
      const VReg one = lanes_const(bits_of(to.element(), 1.0), to.bytes(), width_of(to));
      return set(id, keep(to, mask_in(o.src[0], to.bytes()), one));
    }
    VReg a = use(o.src[0]);
    DType compared = from;
    if (half_float(from)) {  // all bits but the sign
      compared = kUInt16.with_lanes(from.lanes);
      a = rrm(Opcode::vandps, width_of(from), a, lanes_const(0x7FFF, 2, width_of(from)));
    }
    const VReg zero = lanes_const(0, 4, width_of(compared));
    return set(id, compare(Op::NotEqual, compared, a, zero), avx512_ ? 0 : compared.bytes());
  }
  const VReg a = use(o.src[0]);
  const VReg reg = from == to      ? a
                   : to.lanes == 1 ? cast_scalar(from, to, a)
                                   : cast_vector(from, to, a);
  if (reg == kNoReg) return scalarise(id);
  define(id, reg, true);
}

VReg Selector::cast_scalar(DType from, DType to, VReg a) {
  if (from == to) return a;
  if (from.is_float() && to.is_float()) return cast_float(from, to, a);
  if (half_float(from)) return cast_scalar(kFloat32, to, cast_float(from, kFloat32, a));
  if (half_float(to)) return cast_float(kFloat32, to, cast_scalar(from, kFloat32, a));
  if (to.is_float()) return int_to_float_scalar(from, to, a);
  if (from.is_float()) {
    if (!to.is_bool()) return float_to_int_scalar(from, to, a);
    const VReg zero = lanes_const(0, 4, 16);
    const bool single = from.bytes() == 4;
    constexpr int64_t kUnequal = 4;
    const VReg bits = int_reg();
    if (avx512_) {
      emit(Opcode::KToInt, 8, bits,
           krm(single ? Opcode::KCmpss : Opcode::KCmpsd, 16, a, zero, kUnequal));
      return bits;
    }
    const VReg mask = rrmi(single ? Opcode::vcmpss : Opcode::vcmpsd, 16, a, zero, kUnequal);
    emit(Opcode::VToInt, 16, bits, mask).width2 = 4;
    return int_plain(Opcode::IAnd, 4, bits, Operand::immediate(1));
  }
  if (to.is_bool()) return int_compare(Op::NotEqual, from, a, Operand::immediate(0));
  if (to.bytes() == 8 && from.bytes() < 8) {
    const VReg dst = int_reg();
    Inst& i = emit(Opcode::IExtend, 8, dst, a);
    i.width2 = 4;
    if (from.is_signed()) i.flags |= kSigned;
    return dst;
  }
  return canonical(to, a);
}

VReg Selector::int_to_float_scalar(DType from, DType to, VReg a) {
  const auto convert = [&](int64_t width, VReg value) {
    const VReg dst = vec_reg(16);
    emit(Opcode::CvtIntToFloat, width, dst, value).width2 = static_cast<uint8_t>(to.bytes());
    return dst;
  };
  if (from.scalar == ScalarType::UInt32) return convert(8, cast_scalar(kUInt32, kUInt64, a));
  if (from.scalar != ScalarType::UInt64) return convert(int_width(from), a);
  // Above the range of int64: convert half of it, its lowest bit kept for rounding, and double.
  const VReg large = int_compare(Op::Less, kInt64, a, Operand::immediate(0));
  const VReg half = int_plain(Opcode::IOr, 8, int_plain(Opcode::IShr, 8, a, Operand::immediate(1)),
                              int_plain(Opcode::IAnd, 8, a, Operand::immediate(1)));
  const VReg converted = convert(8, int_select(large, half, a));
  return pick(to, scalar_mask(large), float_binary(Op::Add, to, converted, converted, kNoReg),
              converted);
}

VReg Selector::float_to_int_scalar(DType from, DType to, VReg a) {
  if (to.scalar == ScalarType::UInt64) return float_to_uint64_scalar(from, a);
  const auto test = [&](VReg x, VReg y, Cond cond) {
    const VReg dst = int_reg();
    Inst& i = emit(Opcode::FSetCompare, 16, dst, x, y);
    i.width2 = static_cast<uint8_t>(from.bytes());
    i.cond = cond;
    return dst;
  };
  const VReg limit = lanes_const(bits_of(from, std::ldexp(1.0, 63)), from.bytes(), 16);
  const VReg truncated = int_reg();
  emit(Opcode::CvtFloatToInt, 8, truncated, a).width2 = static_cast<uint8_t>(from.bytes());
  VReg r = int_select(test(a, limit, Cond::AE), int_const(INT64_MAX), truncated);
  r = int_select(test(a, a, Cond::NP), r, int_const(0));
  if (to.scalar == ScalarType::Int64) return r;
  r = int_binary(Op::Max, kInt64, r, int_const(int_of(to, lowest_bits(to))));
  return int_binary(Op::Min, kInt64, r, int_const(int_of(to, highest_bits(to))));
}

VReg Selector::float_to_uint64_scalar(DType from, VReg a) {
  const bool single = from.bytes() == 4;
  const auto power = [&](int n) {
    return lanes_const(bits_of(from, std::ldexp(1.0, n)), from.bytes(), 16);
  };
  const auto at_least = [&](VReg x, VReg limit) {
    const VReg dst = int_reg();
    Inst& i = emit(Opcode::FSetCompare, 16, dst, x, limit);
    i.width2 = static_cast<uint8_t>(from.bytes());
    i.cond = Cond::AE;
    return dst;
  };
  const VReg positive = rrm(single ? Opcode::vmaxss : Opcode::vmaxsd, 16, a, lanes_const(0, 4, 16));
  const VReg large = at_least(positive, power(63));
  const VReg reduced = float_binary(Op::Sub, from, positive, power(63), kNoReg);
  const VReg truncated = int_reg();
  emit(Opcode::CvtFloatToInt, 8, truncated, pick(from, scalar_mask(large), reduced, positive))
      .width2 = static_cast<uint8_t>(from.bytes());
  const VReg top = int_plain(Opcode::IShl, 8, large, Operand::immediate(63));
  const VReg whole = int_plain(Opcode::IXor, 8, truncated, top);
  return int_select(at_least(positive, power(64)), int_const(-1), whole);
}

VReg Selector::cast_float(DType from, DType to, VReg a) {
  const int64_t lanes = from.lanes, n4 = width_for(4 * lanes), n2 = width_for(2 * lanes),
                n8 = width_for(8 * lanes);
  const DType single = kFloat32.with_lanes(lanes);
  if (from == to) return a;
  if (from.scalar == ScalarType::Float32) {
    switch (to.scalar) {
      case ScalarType::Float64:
        return lanes == 1 ? rrm(Opcode::vcvtss2sd, 16, a, a) : rr(Opcode::vcvtps2pd, n8, a, n4);
      case ScalarType::BFloat16:
        return float_to_bfloat(lanes, a);
      default: {
        const VReg dst = vec_reg(n2);
        Inst& i = emit(Opcode::vcvtps2ph, n2, dst, a);
        i.width2 = static_cast<uint8_t>(n4);
        return dst;
      }
    }
  }
  VReg widened = kNoReg;
  switch (from.scalar) {
    case ScalarType::Float64:
      widened = lanes == 1 ? rrm(Opcode::vcvtsd2ss, 16, a, a) : rr(Opcode::vcvtpd2ps, n4, a, n8);
      break;
    case ScalarType::Float16:
      widened = rr(Opcode::vcvtph2ps, n4, a, n2);
      break;
    default:
      widened = rri(Opcode::vpslld, n4, rr(Opcode::vpmovzxwd, n4, a, n2), 16);
      break;
  }
  return cast_float(single, to, widened);
}

// Adds half of the last kept bit's unit, and the last kept bit: ties go to even.  NaN stays NaN.
VReg Selector::float_to_bfloat(int64_t lanes, VReg a) {
  const int64_t width = width_for(4 * lanes);
  const DType ints = kUInt32.with_lanes(lanes), floats = kFloat32.with_lanes(lanes);
  const VReg high = rri(Opcode::vpsrld, width, a, 16);
  const VReg odd = rrm(Opcode::vandps, width, high, lanes_const(1, 4, width));
  const VReg half = rrm(Opcode::vpaddd, width, a, lanes_const(0x7FFF, 4, width));
  const VReg rounded = rri(Opcode::vpsrld, width, rrm(Opcode::vpaddd, width, half, odd), 16);
  const VReg quiet = rrm(Opcode::vorps, width, high, lanes_const(0x40, 4, width));
  constexpr int64_t kUnordered = 3;
  const VReg nan = avx512_ ? krm(Opcode::KCmpps, width, a, a, kUnordered)
                           : rrmi(Opcode::vcmpps, width, a, a, kUnordered);
  return resize_ints(ints, kUInt16.with_lanes(lanes), pick(floats, nan, quiet, rounded));
}

// kNoReg where the target has no such instruction or an intermediate does not fit a register.
VReg Selector::cast_vector(DType from, DType to, VReg a) {
  const int64_t lanes = from.lanes, limit = avx512_ ? 64 : 32;
  const DType single = kFloat32.with_lanes(lanes);
  const bool through_single = half_float(from) || half_float(to);
  if (through_single && 4 * lanes > limit) return kNoReg;
  if (from.is_float() && to.is_float()) return cast_float(from, to, a);
  if (half_float(from)) return float_to_int(single, to, cast_float(from, single, a));
  if (half_float(to)) {
    const VReg converted = int_to_float(from, single, a);
    return converted == kNoReg ? kNoReg : cast_float(single, to, converted);
  }
  if (to.is_float()) return int_to_float(from, to, a);
  return from.is_float() ? float_to_int(from, to, a) : resize_ints(from, to, a);
}

VReg Selector::int_to_float(DType from, DType to, VReg a) {
  const int64_t lanes = from.lanes, width = width_of(to);
  if (from.bytes() < 4) {
    const DType wide = kInt32.with_lanes(lanes);
    return int_to_float(wide, to, resize_ints(from, wide, a));
  }
  const bool single = to.bytes() == 4;
  if (from.scalar == ScalarType::Int32)
    return rr(single ? Opcode::vcvtdq2ps : Opcode::vcvtdq2pd, width, a, width_of(from));
  if (!avx512_) return kNoReg;
  if (from.scalar == ScalarType::UInt32)
    return rr(single ? Opcode::vcvtudq2ps : Opcode::vcvtudq2pd, width, a, width_of(from));
  if (from.is_signed())
    return rr(single ? Opcode::vcvtqq2ps : Opcode::vcvtqq2pd, width, a, width_of(from));
  return rr(single ? Opcode::vcvtuqq2ps : Opcode::vcvtuqq2pd, width, a, width_of(from));
}

VReg Selector::float_to_int(DType from, DType to, VReg a) {
  const int64_t lanes = from.lanes, width = width_of(from), to_width = width_of(to);
  const bool single = from.bytes() == 4;
  if (to.bytes() < 4) {
    const DType wide = kInt32.with_lanes(lanes);
    if (4 * lanes > (avx512_ ? 64 : 32)) return kNoReg;
    VReg r = float_to_int(from, wide, a);
    const auto bound = [&](uint64_t bits) {
      return lanes_const(static_cast<uint64_t>(int_of(to.element(), bits)), 4, width_of(wide));
    };
    r = rrm(Opcode::vpmaxsd, width_of(wide), r, bound(lowest_bits(to.element())));
    r = rrm(Opcode::vpminsd, width_of(wide), r, bound(highest_bits(to.element())));
    return resize_ints(wide, to, r);
  }
  const bool wide = to.bytes() == 8;
  if (!avx512_ && (wide || to.is_unsigned())) return kNoReg;
  if (to.is_unsigned()) {  // beyond the range is all ones, which is the highest value
    const VReg positive =
        rrm(single ? Opcode::vmaxps : Opcode::vmaxpd, width, a, lanes_const(0, 4, width));
    const Opcode opcode = single ? (wide ? Opcode::vcvttps2uqq : Opcode::vcvttps2udq)
                                 : (wide ? Opcode::vcvttpd2uqq : Opcode::vcvttpd2udq);
    return rr(opcode, to_width, positive, width);
  }
  const Opcode opcode = single ? (wide ? Opcode::vcvttps2qq : Opcode::vcvttps2dq)
                               : (wide ? Opcode::vcvttpd2qq : Opcode::vcvttpd2dq);
  const VReg r = rr(opcode, to_width, a, width);
  const auto test = [&](const Operand& b, int64_t predicate) {
    if (avx512_) return krm(single ? Opcode::KCmpps : Opcode::KCmppd, width, a, b, predicate);
    const VReg mask = rrmi(single ? Opcode::vcmpps : Opcode::vcmppd, width, a, b, predicate);
    return convert_mask(mask, lanes, from.bytes(), to.bytes());
  };
  const uint64_t limit = bits_of(from.element(), std::ldexp(1.0, static_cast<int>(to.bits()) - 1));
  const VReg highest = lanes_const(highest_bits(to.element()), to.bytes(), to_width);
  const VReg large = test(lanes_const(limit, from.bytes(), width), kNotLess);
  return keep(to, test(a, kOrdered), pick(to, large, highest, r));
}

VReg Selector::resize_ints(DType from, DType to, VReg a) {
  const int64_t lanes = from.lanes, s = from.bytes(), t = to.bytes();
  if (s == t) return a;
  if (s < t) {
    constexpr Opcode kNone = Opcode::VMove;
    constexpr Opcode kSign[3][4] = {
        {kNone, Opcode::vpmovsxbw, Opcode::vpmovsxbd, Opcode::vpmovsxbq},
        {kNone, kNone, Opcode::vpmovsxwd, Opcode::vpmovsxwq},
        {kNone, kNone, kNone, Opcode::vpmovsxdq}};
    constexpr Opcode kZero[3][4] = {
        {kNone, Opcode::vpmovzxbw, Opcode::vpmovzxbd, Opcode::vpmovzxbq},
        {kNone, kNone, Opcode::vpmovzxwd, Opcode::vpmovzxwq},
        {kNone, kNone, kNone, Opcode::vpmovzxdq}};
    const Opcode opcode = (from.is_signed() ? kSign : kZero)[log_of(s)][log_of(t)];
    return rr(opcode, width_for(lanes * t), a, width_for(lanes * s));
  }
  if (!avx512_) return narrow_avx2(lanes, s, t, a);
  constexpr Opcode kNone = Opcode::VMove;
  constexpr Opcode kNarrow[4][3] = {{kNone, kNone, kNone},
                                    {Opcode::vpmovwb, kNone, kNone},
                                    {Opcode::vpmovdb, Opcode::vpmovdw, kNone},
                                    {Opcode::vpmovqb, Opcode::vpmovqw, Opcode::vpmovqd}};
  return rr(kNarrow[log_of(s)][log_of(t)], width_for(lanes * t), a, width_for(lanes * s));
}

// Gathers the low bytes of the lanes in each 16 bytes, then joins the two.
VReg Selector::narrow_avx2(int64_t lanes, int64_t from, int64_t to, VReg a) {
  const int64_t width = width_for(lanes * from);
  std::vector<std::byte> pattern(static_cast<size_t>(width), std::byte{0x80});
  for (int64_t base = 0; base < width; base += 16)
    for (int64_t lane = 0; lane < 16 / from; ++lane)
      for (int64_t b = 0; b < to; ++b)
        pattern[static_cast<size_t>(base + lane * to + b)] =
            static_cast<std::byte>(lane * from + b);
  const VReg packed =
      rrm(Opcode::vpshufb, width, a, pool_reg(pool_bytes(std::move(pattern)), width));
  if (width == 16) return packed;
  const VReg high = vec_reg(16);
  Inst& i = emit(Opcode::VExtract, 16, high, packed);
  i.width2 = 32;
  i.imm = 1;
  const int64_t each = 16 * to / from;
  const Opcode join = each == 8   ? Opcode::vpunpcklqdq
                      : each == 4 ? Opcode::vpunpckldq
                                  : Opcode::vpunpcklwd;
  return rrm(join, 16, packed, high);
}

void Selector::select_bitcast(LinearId id) {
  const LinearOp& o = op(id);
  const DType from = source(o, 0).dtype, to = o.dtype;
  if (from.is_bool() || to.is_bool()) return select_cast(id);
  VReg a = use(o.src[0]);
  const bool to_int = in_int(to), from_int = in_int(from);
  if (from_int && to_int) {
    a = canonical(to, a);
  } else if (from_int) {
    const VReg dst = vec_reg(16);
    emit(Opcode::VFromInt, 16, dst, a).width2 = to.bytes() == 8 ? 8 : 4;
    a = dst;
  } else if (to_int) {
    a = lane_bits(a, 16, to.bytes(), 0);
    if (to.is_signed()) a = canonical(to, a);
  }
  define(id, a, true);
}

}  // namespace tiny::x86
