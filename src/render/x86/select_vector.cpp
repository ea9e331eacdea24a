// Arithmetic: floats of one or more lanes, vectors of integers.
#include <bit>
#include <cmath>

#include "render/x86/selector.h"

namespace tiny::x86 {

namespace {

// The variants of an instruction: packed single, packed double, scalar single, scalar double.
struct FloatOpcodes {
  Opcode ps, pd, ss, sd;
  Opcode of(DType d) const {
    if (d.lanes == 1) return d.bytes() == 4 ? ss : sd;
    return d.bytes() == 4 ? ps : pd;
  }
};

constexpr FloatOpcodes kAddF{Opcode::vaddps, Opcode::vaddpd, Opcode::vaddss, Opcode::vaddsd};
constexpr FloatOpcodes kSubF{Opcode::vsubps, Opcode::vsubpd, Opcode::vsubss, Opcode::vsubsd};
constexpr FloatOpcodes kMulF{Opcode::vmulps, Opcode::vmulpd, Opcode::vmulss, Opcode::vmulsd};
constexpr FloatOpcodes kDivF{Opcode::vdivps, Opcode::vdivpd, Opcode::vdivss, Opcode::vdivsd};
constexpr FloatOpcodes kMaxF{Opcode::vmaxps, Opcode::vmaxpd, Opcode::vmaxss, Opcode::vmaxsd};
constexpr FloatOpcodes kMinF{Opcode::vminps, Opcode::vminpd, Opcode::vminss, Opcode::vminsd};
constexpr FloatOpcodes kScaleByPowerF{Opcode::vscalefps, Opcode::vscalefpd, Opcode::vscalefss,
                                      Opcode::vscalefsd};
constexpr FloatOpcodes kSqrtF{Opcode::vsqrtps, Opcode::vsqrtpd, Opcode::vsqrtss, Opcode::vsqrtsd};
constexpr FloatOpcodes kRoundF{Opcode::vroundps, Opcode::vroundpd, Opcode::vroundss,
                               Opcode::vroundsd};
constexpr FloatOpcodes kScaleF{Opcode::vrndscaleps, Opcode::vrndscalepd, Opcode::vrndscaless,
                               Opcode::vrndscalesd};

bool computes(DType d) {
  return d.scalar == ScalarType::Float32 || d.scalar == ScalarType::Float64;
}

// Rounding control of vround and vrndscale; 8: no inexact exception.
int64_t rounding_of(Op op) {
  switch (op) {
    case Op::Floor:
      return 8 | 1;
    case Op::Ceil:
      return 8 | 2;
    case Op::Trunc:
      return 8 | 3;
    default:
      return 8;
  }
}

}  // namespace

VReg Selector::binary(Op op, DType dtype, VReg a, const Operand& b, VReg dst) {
  if (in_int(dtype)) return int_binary(op, dtype, a, b, dst);
  if (dtype.is_float()) return float_binary(op, dtype, a, b, dst);
  return vector_int_binary(op, dtype, a, b, dst);
}

VReg Selector::unary(Op op, DType dtype, VReg a) {
  if (in_int(dtype)) return int_unary(op, dtype, a);
  if (dtype.is_float()) return float_unary(op, dtype, a);
  return vector_int_unary(op, dtype, a);
}

VReg Selector::float_binary(Op op, DType dtype, VReg a, const Operand& b, VReg dst) {
  if (!computes(dtype)) unsupported("floats of 16 bits are computed as float32");
  const int64_t width = width_of(dtype);
  switch (op) {
    case Op::Add:
      return rrm(kAddF.of(dtype), width, a, b, dst);
    case Op::Sub:
      return rrm(kSubF.of(dtype), width, a, b, dst);
    case Op::Mul:
      return rrm(kMulF.of(dtype), width, a, b, dst);
    case Op::Div:
      return rrm(kDivF.of(dtype), width, a, b, dst);
    case Op::Scale:
      if (!avx512_) unsupported("is an instruction of AVX-512");
      return rrm(kScaleByPowerF.of(dtype), width, a, b, dst);
    case Op::Max:
    case Op::Min:
      return float_extreme(op, dtype, a, as_reg(dtype, b), dst);
    default:
      unsupported("is not a float op");
  }
}

// vmax(b, a) is b > a ? b : a, and a where either is NaN: right except for a NaN in b.
VReg Selector::float_extreme(Op op, DType dtype, VReg a, VReg b, VReg dst) {
  const int64_t width = width_of(dtype);
  const VReg extreme = rrm((op == Op::Max ? kMaxF : kMinF).of(dtype), width, b, a);
  const bool single = dtype.bytes() == 4;
  constexpr int64_t kUnordered = 3;
  dst = or_vec(dst, width);
  if (avx512_) {
    const VReg nan = krm(single ? Opcode::KCmpps : Opcode::KCmppd, width, b, b, kUnordered);
    emit(single ? Opcode::vblendmps : Opcode::vblendmpd, width, dst, extreme, b).mask = nan;
  } else {
    const VReg nan = rrmi(single ? Opcode::vcmpps : Opcode::vcmppd, width, b, b, kUnordered);
    emit(Opcode::VBlend, width, dst, extreme, b, nan).width2 = static_cast<uint8_t>(dtype.bytes());
  }
  return dst;
}

VReg Selector::float_unary(Op op, DType dtype, VReg a) {
  const int64_t width = width_of(dtype), size = dtype.bytes();
  const uint64_t sign = uint64_t{1} << (8 * size - 1);
  if (op == Op::Neg) return rrm(Opcode::vxorps, width, a, lanes_const(sign, size, width));
  if (op == Op::Abs) return rrm(Opcode::vandps, width, a, lanes_const(sign - 1, size, width));
  if (!computes(dtype)) unsupported("floats of 16 bits are computed as float32");
  if (op == Op::Sqrt) {
    if (dtype.lanes == 1) return rrm(kSqrtF.of(dtype), width, a, a);
    return rr(kSqrtF.of(dtype), width, a);
  }
  const Opcode opcode = (avx512_ ? kScaleF : kRoundF).of(dtype);
  const int64_t mode = rounding_of(op);
  return dtype.lanes == 1 ? rrmi(opcode, width, a, a, mode) : rri(opcode, width, a, mode);
}

VReg Selector::vector_int_binary(Op op, DType dtype, VReg a, const Operand& b, VReg dst) {
  const int64_t width = width_of(dtype), size = dtype.bytes();
  const size_t log = static_cast<size_t>(std::countr_zero(static_cast<uint64_t>(size)));
  constexpr Opcode kAdd[] = {Opcode::vpaddb, Opcode::vpaddw, Opcode::vpaddd, Opcode::vpaddq};
  constexpr Opcode kSub[] = {Opcode::vpsubb, Opcode::vpsubw, Opcode::vpsubd, Opcode::vpsubq};
  switch (op) {
    case Op::Add:
      return rrm(kAdd[log], width, a, b, dst);
    case Op::Sub:
      return rrm(kSub[log], width, a, b, dst);
    case Op::And:
      return rrm(Opcode::vandps, width, a, b, dst);
    case Op::Or:
      return rrm(Opcode::vorps, width, a, b, dst);
    case Op::Xor:
      return rrm(Opcode::vxorps, width, a, b, dst);
    case Op::Mul:
      if (size == 2) return rrm(Opcode::vpmullw, width, a, b, dst);
      if (size == 4) return rrm(Opcode::vpmulld, width, a, b, dst);
      if (size == 8)
        return avx512_ ? rrm(Opcode::vpmullq, width, a, b, dst)
                       : mul_int64(width, a, as_reg(dtype, b));
      break;
    case Op::Max:
    case Op::Min:
      return vector_int_extreme(op, dtype, a, as_reg(dtype, b));
    case Op::Shl:
      if (size == 4 || size == 8)
        return rrm(size == 4 ? Opcode::vpsllvd : Opcode::vpsllvq, width, a, b, dst);
      break;
    case Op::Shr:
      if (size < 4) break;
      if (!dtype.is_signed())
        return rrm(size == 4 ? Opcode::vpsrlvd : Opcode::vpsrlvq, width, a, b, dst);
      if (size == 4) return rrm(Opcode::vpsravd, width, a, b, dst);
      if (avx512_) return rrm(Opcode::vpsravq, width, a, b, dst);
      break;
    default:
      break;
  }
  return kNoReg;  // no such instruction: lane by lane
}

VReg Selector::vector_int_extreme(Op op, DType dtype, VReg a, VReg b) {
  const int64_t width = width_of(dtype);
  constexpr Opcode kMaxSigned[] = {Opcode::vpmaxsb, Opcode::vpmaxsw, Opcode::vpmaxsd,
                                   Opcode::vpmaxsq};
  constexpr Opcode kMaxUnsigned[] = {Opcode::vpmaxub, Opcode::vpmaxuw, Opcode::vpmaxud,
                                     Opcode::vpmaxuq};
  constexpr Opcode kMinSigned[] = {Opcode::vpminsb, Opcode::vpminsw, Opcode::vpminsd,
                                   Opcode::vpminsq};
  constexpr Opcode kMinUnsigned[] = {Opcode::vpminub, Opcode::vpminuw, Opcode::vpminud,
                                     Opcode::vpminuq};
  if (dtype.bytes() == 8 && !avx512_) {
    const VReg less = compare(Op::Less, dtype, a, b);
    return op == Op::Max ? pick(dtype, less, b, a) : pick(dtype, less, a, b);
  }
  const size_t log = static_cast<size_t>(std::countr_zero(static_cast<uint64_t>(dtype.bytes())));
  const bool is_signed = dtype.is_signed();
  const Opcode opcode = op == Op::Max ? (is_signed ? kMaxSigned : kMaxUnsigned)[log]
                                      : (is_signed ? kMinSigned : kMinUnsigned)[log];
  return rrm(opcode, width, a, b);
}

// The low 64 bits of a product from three products of 32 bits.
VReg Selector::mul_int64(int64_t width, VReg a, VReg b) {
  const VReg low = rrm(Opcode::vpmuludq, width, a, b);
  const VReg a_high = rri(Opcode::vpsrlq, width, a, 32);
  const VReg b_high = rri(Opcode::vpsrlq, width, b, 32);
  const VReg cross1 = rrm(Opcode::vpmuludq, width, a_high, b);
  const VReg cross2 = rrm(Opcode::vpmuludq, width, a, b_high);
  const VReg cross = rrm(Opcode::vpaddq, width, cross1, cross2);
  return rrm(Opcode::vpaddq, width, low, rri(Opcode::vpsllq, width, cross, 32));
}

VReg Selector::vector_int_unary(Op op, DType dtype, VReg a) {
  const int64_t width = width_of(dtype);
  constexpr Opcode kAbs[] = {Opcode::vpabsb, Opcode::vpabsw, Opcode::vpabsd, Opcode::vpabsq};
  switch (op) {
    case Op::Neg:
      return vector_int_binary(Op::Sub, dtype, lanes_const(0, 4, width), a, kNoReg);
    case Op::Not:
      return rrm(Opcode::vxorps, width, a, lanes_const(~uint64_t{0}, 4, width));
    case Op::Abs:
      if (!dtype.is_signed()) return a;
      if (dtype.bytes() == 8 && !avx512_) {
        const VReg sign = rrm(Opcode::vpcmpgtq, width, lanes_const(0, 4, width), a);
        return rrm(Opcode::vpsubq, width, rrm(Opcode::vxorps, width, a, sign), sign);
      }
      return rr(kAbs[std::countr_zero(static_cast<uint64_t>(dtype.bytes()))], width, a);
    default:
      unsupported("is not an integer op");
  }
}

// Constants, and numbers that were integers, are never NaN.
bool Selector::never_nan(LinearId id) const {
  const LinearOp* o = &op(id);
  if (o->op == Op::Broadcast) o = &op(o->src[0]);
  if (o->op == Op::Cast) return !source(*o, 0).dtype.is_float();
  return o->op == Op::Const &&
         !std::isnan(double_of(o->dtype.element(), static_cast<uint64_t>(o->imm)));
}

// Max and Min need one instruction if the second operand is not NaN, or if the first is a constant
// that is neither NaN nor a zero.
bool Selector::select_max_of_constant(LinearId id) {
  const LinearOp& o = op(id);
  if (!computes(o.dtype)) return false;
  const Opcode opcode = (o.op == Op::Max ? kMaxF : kMinF).of(o.dtype);
  if (never_nan(o.src[1])) {
    const VReg b = use(o.src[1]);
    set(id, rrm(opcode, width_of(o.dtype), b, use_vector_operand(o.src[0]), target_of(id)));
    return true;
  }
  if (!is_const(o.src[0]) || !never_nan(o.src[0]) ||
      (op(o.src[0]).imm << (o.dtype.bytes() == 4 ? 33 : 1)) == 0)
    return false;
  const VReg a = use(o.src[0]);
  set(id, rrm(opcode, width_of(o.dtype), a, use_vector_operand(o.src[1]), target_of(id)));
  return true;
}

bool Selector::select_shift_by_constant(LinearId id) {
  const LinearOp& o = op(id);
  const LinearOp* by = &source(o, 1);
  if (by->op == Op::Broadcast) by = &source(*by, 0);
  const DType d = o.dtype;
  if (by->op != Op::Const || d.bytes() < 4) return false;
  int64_t count = int_of(d.element(), static_cast<uint64_t>(by->imm));
  const bool keeps_sign = o.op == Op::Shr && d.is_signed();
  if (keeps_sign && d.bytes() == 8 && !avx512_) return false;
  if (count < 0 || count >= d.bits()) {
    if (!keeps_sign) {
      set(id, lanes_const(0, 4, width_of(d)));
      return true;
    }
    count = d.bits() - 1;
  }
  const bool wide = d.bytes() == 8;
  Opcode opcode = wide ? Opcode::vpsllq : Opcode::vpslld;
  if (o.op == Op::Shr) opcode = wide ? Opcode::vpsrlq : Opcode::vpsrld;
  if (keeps_sign) opcode = wide ? Opcode::vpsraq : Opcode::vpsrad;
  set(id, rri(opcode, width_of(d), use(o.src[0]), count));
  return true;
}

void Selector::select_binary(LinearId id) {
  const LinearOp& o = op(id);
  const DType d = o.dtype;
  if (is_mask(d)) return select_mask_logic(id);
  if ((o.op == Op::Max || o.op == Op::Min) && d.is_float() && select_max_of_constant(id)) return;
  const bool shifts = o.op == Op::Shl || o.op == Op::Shr;
  if (shifts && d.lanes > 1 && select_shift_by_constant(id)) return;
  LinearId first = o.src[0], second = o.src[1];
  const bool orderless = o.op == Op::Add || o.op == Op::Mul || o.op == Op::And || o.op == Op::Or ||
                         o.op == Op::Xor || (d.is_int() && (o.op == Op::Max || o.op == Op::Min));
  if (orderless && (is_const(first) || values_[first].deferred) && !is_const(second) &&
      !values_[second].deferred)
    std::swap(first, second);
  const VReg a = use(first);
  const Operand b = use_operand(second);
  const VReg reg = binary(o.op, d, a, b, target_of(id));
  if (reg == kNoReg) return scalarise(id);
  define(id, reg, true);
}

void Selector::select_fma(LinearId id) {
  const LinearOp& o = op(id);
  const DType d = o.dtype;
  if (!computes(d)) unsupported("floats of 16 bits are computed as float32");
  VReg src[3] = {kNoReg, kNoReg, kNoReg};
  // One operand may be memory: a factor if there is one pending, else the addend.
  size_t memory = 3;
  for (size_t s : {size_t{1}, size_t{0}, size_t{2}})
    if (memory == 3 && values_[o.src[s]].deferred) memory = s;
  Operand from_memory(kNoReg);
  for (size_t s = 0; s < 3; ++s)
    if (s != memory) src[s] = use(o.src[s]);
  if (memory != 3) {
    from_memory = use_vector_operand(o.src[memory]);
    src[memory] = from_memory.reg;
  }
  const VReg target = target_of(id);
  const VReg dst = or_vec(target, width_of(d));
  Inst& i = emit(d.lanes == 1 ? Opcode::FmaScalar : Opcode::Fma, width_of(d), dst, src[0], src[1],
                 src[2]);
  i.width2 = static_cast<uint8_t>(d.bytes());
  if (memory != 3 && from_memory.reg == kNoReg) i.mem = from_memory.mem;
  set(id, dst);
}

}  // namespace tiny::x86
