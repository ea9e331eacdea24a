#include "render/x86/select/floats.h"

#include "render/x86/select/integers.h"

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

bool computes(DType d) {
  return d.scalar == ScalarType::Float32 || d.scalar == ScalarType::Float64;
}

Opcode float_extreme_opcode(Op op, DType dtype) {
  return (op == Op::Max ? kMaxF : kMinF).of(dtype);
}

namespace {

// vmax(b, a) is b > a ? b : a, and a where either is NaN: right except for a NaN in b.
VReg float_extreme(Emitter& e, Op op, DType dtype, VReg a, VReg b, VReg dst) {
  const int64_t width = width_of(dtype);
  const VReg extreme = e.rrm(float_extreme_opcode(op, dtype), width, b, a);
  const bool single = dtype.bytes() == 4;
  constexpr int64_t kUnordered = 3;
  dst = e.or_vec(dst, width);
  if (e.avx512()) {
    const VReg nan = e.krm(single ? Opcode::KCmpps : Opcode::KCmppd, width, b, b, kUnordered);
    e.emit(single ? Opcode::vblendmps : Opcode::vblendmpd, width, dst, extreme, b).mask = nan;
  } else {
    const VReg nan = e.rrmi(single ? Opcode::vcmpps : Opcode::vcmppd, width, b, b, kUnordered);
    e.emit(Opcode::VBlend, width, dst, extreme, b, nan).width2 =
        static_cast<uint8_t>(dtype.bytes());
  }
  return dst;
}

}  // namespace

VReg float_binary(Emitter& e, Op op, DType dtype, VReg a, const Operand& b, VReg dst) {
  if (!computes(dtype)) e.unsupported("floats of 16 bits are computed as float32");
  const int64_t width = width_of(dtype);
  switch (op) {
    case Op::Add:
      return e.rrm(kAddF.of(dtype), width, a, b, dst);
    case Op::Sub:
      return e.rrm(kSubF.of(dtype), width, a, b, dst);
    case Op::Mul:
      return e.rrm(kMulF.of(dtype), width, a, b, dst);
    case Op::Div:
      return e.rrm(kDivF.of(dtype), width, a, b, dst);
    case Op::Scale:
      if (!e.avx512()) e.unsupported("is an instruction of AVX-512");
      return e.rrm(kScaleByPowerF.of(dtype), width, a, b, dst);
    case Op::Max:
    case Op::Min:
      return float_extreme(e, op, dtype, a, as_reg(e, dtype, b), dst);
    default:
      e.unsupported("is not a float op");
  }
}

VReg float_unary(Emitter& e, Op op, DType dtype, VReg a) {
  const int64_t width = width_of(dtype), size = dtype.bytes();
  const uint64_t sign = uint64_t{1} << (8 * size - 1);
  if (op == Op::Neg) return e.rrm(Opcode::vxorps, width, a, e.lanes_const(sign, size, width));
  if (op == Op::Abs) return e.rrm(Opcode::vandps, width, a, e.lanes_const(sign - 1, size, width));
  if (!computes(dtype)) e.unsupported("floats of 16 bits are computed as float32");
  if (op == Op::Sqrt) {
    if (dtype.lanes == 1) return e.rrm(kSqrtF.of(dtype), width, a, a);
    return e.rr(kSqrtF.of(dtype), width, a);
  }
  const Opcode opcode = (e.avx512() ? kScaleF : kRoundF).of(dtype);
  const int64_t mode = rounding_of(op);
  return dtype.lanes == 1 ? e.rrmi(opcode, width, a, a, mode) : e.rri(opcode, width, a, mode);
}

}  // namespace tiny::x86
