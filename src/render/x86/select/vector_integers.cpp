#include "render/x86/select/vector_integers.h"

#include <bit>

#include "render/x86/select/comparisons.h"
#include "render/x86/select/integers.h"
#include "render/x86/select/masks.h"

namespace tiny::x86 {

namespace {

// The low 64 bits of a product from three products of 32 bits.
VReg mul_int64(Emitter& e, int64_t width, VReg a, VReg b) {
  const VReg low = e.rrm(Opcode::vpmuludq, width, a, b);
  const VReg a_high = e.rri(Opcode::vpsrlq, width, a, 32);
  const VReg b_high = e.rri(Opcode::vpsrlq, width, b, 32);
  const VReg cross1 = e.rrm(Opcode::vpmuludq, width, a_high, b);
  const VReg cross2 = e.rrm(Opcode::vpmuludq, width, a, b_high);
  const VReg cross = e.rrm(Opcode::vpaddq, width, cross1, cross2);
  return e.rrm(Opcode::vpaddq, width, low, e.rri(Opcode::vpsllq, width, cross, 32));
}

VReg vector_int_extreme(Emitter& e, Op op, DType dtype, VReg a, VReg b) {
  const int64_t width = width_of(dtype);
  constexpr Opcode kMaxSigned[] = {Opcode::vpmaxsb, Opcode::vpmaxsw, Opcode::vpmaxsd,
                                   Opcode::vpmaxsq};
  constexpr Opcode kMaxUnsigned[] = {Opcode::vpmaxub, Opcode::vpmaxuw, Opcode::vpmaxud,
                                     Opcode::vpmaxuq};
  constexpr Opcode kMinSigned[] = {Opcode::vpminsb, Opcode::vpminsw, Opcode::vpminsd,
                                   Opcode::vpminsq};
  constexpr Opcode kMinUnsigned[] = {Opcode::vpminub, Opcode::vpminuw, Opcode::vpminud,
                                     Opcode::vpminuq};
  if (dtype.bytes() == 8 && !e.avx512()) {
    const VReg less = compare(e, Op::Less, dtype, a, b);
    return op == Op::Max ? pick(e, dtype, less, b, a) : pick(e, dtype, less, a, b);
  }
  const size_t log = static_cast<size_t>(std::countr_zero(static_cast<uint64_t>(dtype.bytes())));
  const bool is_signed = dtype.is_signed();
  const Opcode opcode = op == Op::Max ? (is_signed ? kMaxSigned : kMaxUnsigned)[log]
                                      : (is_signed ? kMinSigned : kMinUnsigned)[log];
  return e.rrm(opcode, width, a, b);
}

}  // namespace

VReg vector_int_binary(Emitter& e, Op op, DType dtype, VReg a, const Operand& b, VReg dst) {
  const int64_t width = width_of(dtype), size = dtype.bytes();
  const size_t log = static_cast<size_t>(std::countr_zero(static_cast<uint64_t>(size)));
  constexpr Opcode kAdd[] = {Opcode::vpaddb, Opcode::vpaddw, Opcode::vpaddd, Opcode::vpaddq};
  constexpr Opcode kSub[] = {Opcode::vpsubb, Opcode::vpsubw, Opcode::vpsubd, Opcode::vpsubq};
  switch (op) {
    case Op::Add:
      return e.rrm(kAdd[log], width, a, b, dst);
    case Op::Sub:
      return e.rrm(kSub[log], width, a, b, dst);
    case Op::And:
      return e.rrm(Opcode::vandps, width, a, b, dst);
    case Op::Or:
      return e.rrm(Opcode::vorps, width, a, b, dst);
    case Op::Xor:
      return e.rrm(Opcode::vxorps, width, a, b, dst);
    case Op::Mul:
      if (size == 2) return e.rrm(Opcode::vpmullw, width, a, b, dst);
      if (size == 4) return e.rrm(Opcode::vpmulld, width, a, b, dst);
      if (size == 8)
        return e.avx512() ? e.rrm(Opcode::vpmullq, width, a, b, dst)
                          : mul_int64(e, width, a, as_reg(e, dtype, b));
      break;
    case Op::Max:
    case Op::Min:
      return vector_int_extreme(e, op, dtype, a, as_reg(e, dtype, b));
    case Op::Shl:
      if (size == 4 || size == 8)
        return e.rrm(size == 4 ? Opcode::vpsllvd : Opcode::vpsllvq, width, a, b, dst);
      break;
    case Op::Shr:
      if (size < 4) break;
      if (!dtype.is_signed())
        return e.rrm(size == 4 ? Opcode::vpsrlvd : Opcode::vpsrlvq, width, a, b, dst);
      if (size == 4) return e.rrm(Opcode::vpsravd, width, a, b, dst);
      if (e.avx512()) return e.rrm(Opcode::vpsravq, width, a, b, dst);
      break;
    default:
      break;
  }
  return kNoReg;  // no such instruction: lane by lane
}

VReg vector_int_unary(Emitter& e, Op op, DType dtype, VReg a) {
  const int64_t width = width_of(dtype);
  constexpr Opcode kAbs[] = {Opcode::vpabsb, Opcode::vpabsw, Opcode::vpabsd, Opcode::vpabsq};
  switch (op) {
    case Op::Neg:
      return vector_int_binary(e, Op::Sub, dtype, e.lanes_const(0, 4, width), a, kNoReg);
    case Op::Not:
      return e.rrm(Opcode::vxorps, width, a, e.lanes_const(~uint64_t{0}, 4, width));
    case Op::Abs:
      if (!dtype.is_signed()) return a;
      if (dtype.bytes() == 8 && !e.avx512()) {
        const VReg sign = e.rrm(Opcode::vpcmpgtq, width, e.lanes_const(0, 4, width), a);
        return e.rrm(Opcode::vpsubq, width, e.rrm(Opcode::vxorps, width, a, sign), sign);
      }
      return e.rr(kAbs[std::countr_zero(static_cast<uint64_t>(dtype.bytes()))], width, a);
    default:
      e.unsupported("is not an integer op");
  }
}

}  // namespace tiny::x86
