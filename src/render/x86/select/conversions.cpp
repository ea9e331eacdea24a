#include "render/x86/select/conversions.h"

#include <cmath>

#include "render/x86/select/float_conversions.h"
#include "render/x86/select/floats.h"
#include "render/x86/select/integers.h"
#include "render/x86/select/masks.h"
#include "render/x86/select/resize_ints.h"

namespace tiny::x86 {

namespace {

constexpr int64_t kOrdered = 7, kNotLess = 0x1D;  // vcmp: neither is NaN; >=

VReg int_to_float_scalar(Emitter& e, DType from, DType to, VReg a) {
  const auto convert = [&](int64_t width, VReg value) {
    const VReg dst = e.vec_reg(16);
    e.emit(Opcode::CvtIntToFloat, width, dst, value).width2 = static_cast<uint8_t>(to.bytes());
    return dst;
  };
  if (from.scalar == ScalarType::UInt32) return convert(8, cast_scalar(e, kUInt32, kUInt64, a));
  if (from.scalar != ScalarType::UInt64) return convert(int_width(from), a);
  // Above the range of int64: convert half of it, its lowest bit kept for rounding, and double.
  const VReg large = int_compare(e, Op::Less, kInt64, a, Operand::immediate(0));
  const VReg half =
      int_plain(e, Opcode::IOr, 8, int_plain(e, Opcode::IShr, 8, a, Operand::immediate(1)),
                int_plain(e, Opcode::IAnd, 8, a, Operand::immediate(1)));
  const VReg converted = convert(8, int_select(e, large, half, a));
  return pick(e, to, scalar_mask(e, large),
              float_binary(e, Op::Add, to, converted, converted, kNoReg), converted);
}

VReg float_to_uint64_scalar(Emitter& e, DType from, VReg a) {
  const bool single = from.bytes() == 4;
  const auto power = [&](int n) {
    return e.lanes_const(bits_of(from, std::ldexp(1.0, n)), from.bytes(), 16);
  };
  const auto at_least = [&](VReg x, VReg limit) {
    const VReg dst = e.int_reg();
    Inst& i = e.emit(Opcode::FSetCompare, 16, dst, x, limit);
    i.width2 = static_cast<uint8_t>(from.bytes());
    i.cond = Cond::AE;
    return dst;
  };
  const VReg positive =
      e.rrm(single ? Opcode::vmaxss : Opcode::vmaxsd, 16, a, e.lanes_const(0, 4, 16));
  const VReg large = at_least(positive, power(63));
  const VReg reduced = float_binary(e, Op::Sub, from, positive, power(63), kNoReg);
  const VReg truncated = e.int_reg();
  e.emit(Opcode::CvtFloatToInt, 8, truncated,
         pick(e, from, scalar_mask(e, large), reduced, positive))
      .width2 = static_cast<uint8_t>(from.bytes());
  const VReg top = int_plain(e, Opcode::IShl, 8, large, Operand::immediate(63));
  const VReg whole = int_plain(e, Opcode::IXor, 8, truncated, top);
  return int_select(e, at_least(positive, power(64)), e.int_const(-1), whole);
}

VReg float_to_int_scalar(Emitter& e, DType from, DType to, VReg a) {
  if (to.scalar == ScalarType::UInt64) return float_to_uint64_scalar(e, from, a);
  const auto test = [&](VReg x, VReg y, Cond cond) {
    const VReg dst = e.int_reg();
    Inst& i = e.emit(Opcode::FSetCompare, 16, dst, x, y);
    i.width2 = static_cast<uint8_t>(from.bytes());
    i.cond = cond;
    return dst;
  };
  const VReg limit = e.lanes_const(bits_of(from, std::ldexp(1.0, 63)), from.bytes(), 16);
  const VReg truncated = e.int_reg();
  e.emit(Opcode::CvtFloatToInt, 8, truncated, a).width2 = static_cast<uint8_t>(from.bytes());
  VReg r = int_select(e, test(a, limit, Cond::AE), e.int_const(INT64_MAX), truncated);
  r = int_select(e, test(a, a, Cond::NP), r, e.int_const(0));
  if (to.scalar == ScalarType::Int64) return r;
  r = int_binary(e, Op::Max, kInt64, r, e.int_const(int_of(to, lowest_bits(to))));
  return int_binary(e, Op::Min, kInt64, r, e.int_const(int_of(to, highest_bits(to))));
}

VReg int_to_float(Emitter& e, DType from, DType to, VReg a) {
  const int64_t lanes = from.lanes, width = width_of(to);
  if (from.bytes() < 4) {
    const DType wide = kInt32.with_lanes(lanes);
    return int_to_float(e, wide, to, resize_ints(e, from, wide, a));
  }
  const bool single = to.bytes() == 4;
  if (from.scalar == ScalarType::Int32)
    return e.rr(single ? Opcode::vcvtdq2ps : Opcode::vcvtdq2pd, width, a, width_of(from));
  if (!e.avx512()) return kNoReg;
  if (from.scalar == ScalarType::UInt32)
    return e.rr(single ? Opcode::vcvtudq2ps : Opcode::vcvtudq2pd, width, a, width_of(from));
  if (from.is_signed())
    return e.rr(single ? Opcode::vcvtqq2ps : Opcode::vcvtqq2pd, width, a, width_of(from));
  return e.rr(single ? Opcode::vcvtuqq2ps : Opcode::vcvtuqq2pd, width, a, width_of(from));
}

VReg float_to_int(Emitter& e, DType from, DType to, VReg a) {
  const int64_t lanes = from.lanes, width = width_of(from), to_width = width_of(to);
  const bool single = from.bytes() == 4;
  if (to.bytes() < 4) {
    const DType wide = kInt32.with_lanes(lanes);
    if (4 * lanes > (e.avx512() ? 64 : 32)) return kNoReg;
    VReg r = float_to_int(e, from, wide, a);
    const auto bound = [&](uint64_t bits) {
      return e.lanes_const(static_cast<uint64_t>(int_of(to.element(), bits)), 4, width_of(wide));
    };
    r = e.rrm(Opcode::vpmaxsd, width_of(wide), r, bound(lowest_bits(to.element())));
    r = e.rrm(Opcode::vpminsd, width_of(wide), r, bound(highest_bits(to.element())));
    return resize_ints(e, wide, to, r);
  }
  const bool wide = to.bytes() == 8;
  if (!e.avx512() && (wide || to.is_unsigned())) return kNoReg;
  if (to.is_unsigned()) {  // beyond the range is all ones, which is the highest value
    const VReg positive =
        e.rrm(single ? Opcode::vmaxps : Opcode::vmaxpd, width, a, e.lanes_const(0, 4, width));
    const Opcode opcode = single ? (wide ? Opcode::vcvttps2uqq : Opcode::vcvttps2udq)
                                 : (wide ? Opcode::vcvttpd2uqq : Opcode::vcvttpd2udq);
    return e.rr(opcode, to_width, positive, width);
  }
  const Opcode opcode = single ? (wide ? Opcode::vcvttps2qq : Opcode::vcvttps2dq)
                               : (wide ? Opcode::vcvttpd2qq : Opcode::vcvttpd2dq);
  const VReg r = e.rr(opcode, to_width, a, width);
  const auto test = [&](const Operand& b, int64_t predicate) {
    if (e.avx512()) return e.krm(single ? Opcode::KCmpps : Opcode::KCmppd, width, a, b, predicate);
    const VReg mask = e.rrmi(single ? Opcode::vcmpps : Opcode::vcmppd, width, a, b, predicate);
    return convert_mask(e, mask, lanes, from.bytes(), to.bytes());
  };
  const uint64_t limit = bits_of(from.element(), std::ldexp(1.0, static_cast<int>(to.bits()) - 1));
  const VReg highest = e.lanes_const(highest_bits(to.element()), to.bytes(), to_width);
  const VReg large = test(e.lanes_const(limit, from.bytes(), width), kNotLess);
  return keep(e, to, test(a, kOrdered), pick(e, to, large, highest, r));
}

}  // namespace

bool half_float(DType d) {
  return d.is_float() && d.bytes() == 2;
}

VReg cast_scalar(Emitter& e, DType from, DType to, VReg a) {
  if (from == to) return a;
  if (from.is_float() && to.is_float()) return cast_float(e, from, to, a);
  if (half_float(from)) return cast_scalar(e, kFloat32, to, cast_float(e, from, kFloat32, a));
  if (half_float(to)) return cast_float(e, kFloat32, to, cast_scalar(e, from, kFloat32, a));
  if (to.is_float()) return int_to_float_scalar(e, from, to, a);
  if (from.is_float()) {
    if (!to.is_bool()) return float_to_int_scalar(e, from, to, a);
    const VReg zero = e.lanes_const(0, 4, 16);
    const bool single = from.bytes() == 4;
    constexpr int64_t kUnequal = 4;
    const VReg bits = e.int_reg();
    if (e.avx512()) {
      e.emit(Opcode::KToInt, 8, bits,
             e.krm(single ? Opcode::KCmpss : Opcode::KCmpsd, 16, a, zero, kUnequal));
      return bits;
    }
    const VReg mask = e.rrmi(single ? Opcode::vcmpss : Opcode::vcmpsd, 16, a, zero, kUnequal);
    e.emit(Opcode::VToInt, 16, bits, mask).width2 = 4;
    return int_plain(e, Opcode::IAnd, 4, bits, Operand::immediate(1));
  }
  if (to.is_bool()) return int_compare(e, Op::NotEqual, from, a, Operand::immediate(0));
  if (to.bytes() == 8 && from.bytes() < 8) {
    const VReg dst = e.int_reg();
    Inst& i = e.emit(Opcode::IExtend, 8, dst, a);
    i.width2 = 4;
    if (from.is_signed()) i.flags |= kSigned;
    return dst;
  }
  return canonical(e, to, a);
}

// kNoReg where the target has no such instruction or an intermediate does not fit a register.
VReg cast_vector(Emitter& e, DType from, DType to, VReg a) {
  const int64_t lanes = from.lanes, limit = e.avx512() ? 64 : 32;
  const DType single = kFloat32.with_lanes(lanes);
  const bool through_single = half_float(from) || half_float(to);
  if (through_single && 4 * lanes > limit) return kNoReg;
  if (from.is_float() && to.is_float()) return cast_float(e, from, to, a);
  if (half_float(from)) return float_to_int(e, single, to, cast_float(e, from, single, a));
  if (half_float(to)) {
    const VReg converted = int_to_float(e, from, single, a);
    return converted == kNoReg ? kNoReg : cast_float(e, single, to, converted);
  }
  if (to.is_float()) return int_to_float(e, from, to, a);
  return from.is_float() ? float_to_int(e, from, to, a) : resize_ints(e, from, to, a);
}

}  // namespace tiny::x86
