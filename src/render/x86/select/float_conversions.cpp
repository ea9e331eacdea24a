#include "render/x86/select/float_conversions.h"

#include "render/x86/select/masks.h"
#include "render/x86/select/resize_ints.h"

namespace tiny::x86 {

namespace {

// Adds half of the last kept bit's unit, and the last kept bit: ties go to even.  NaN stays NaN.
VReg float_to_bfloat(Emitter& e, int64_t lanes, VReg a) {
  const int64_t width = width_for(4 * lanes);
  const DType ints = kUInt32.with_lanes(lanes), floats = kFloat32.with_lanes(lanes);
  const VReg high = e.rri(Opcode::vpsrld, width, a, 16);
  const VReg odd = e.rrm(Opcode::vandps, width, high, e.lanes_const(1, 4, width));
  const VReg half = e.rrm(Opcode::vpaddd, width, a, e.lanes_const(0x7FFF, 4, width));
  const VReg rounded = e.rri(Opcode::vpsrld, width, e.rrm(Opcode::vpaddd, width, half, odd), 16);
  const VReg quiet = e.rrm(Opcode::vorps, width, high, e.lanes_const(0x40, 4, width));
  constexpr int64_t kUnordered = 3;
  const VReg nan = e.avx512() ? e.krm(Opcode::KCmpps, width, a, a, kUnordered)
                              : e.rrmi(Opcode::vcmpps, width, a, a, kUnordered);
  return resize_ints(e, ints, kUInt16.with_lanes(lanes), pick(e, floats, nan, quiet, rounded));
}

}  // namespace

VReg cast_float(Emitter& e, DType from, DType to, VReg a) {
  const int64_t lanes = from.lanes, n4 = width_for(4 * lanes), n2 = width_for(2 * lanes),
                n8 = width_for(8 * lanes);
  const DType single = kFloat32.with_lanes(lanes);
  if (from == to) return a;
  if (from.scalar == ScalarType::Float32) {
    switch (to.scalar) {
      case ScalarType::Float64:
        return lanes == 1 ? e.rrm(Opcode::vcvtss2sd, 16, a, a) : e.rr(Opcode::vcvtps2pd, n8, a, n4);
      case ScalarType::BFloat16:
        return float_to_bfloat(e, lanes, a);
      default: {
        const VReg dst = e.vec_reg(n2);
        Inst& i = e.emit(Opcode::vcvtps2ph, n2, dst, a);
        i.width2 = static_cast<uint8_t>(n4);
        return dst;
      }
    }
  }
  VReg widened = kNoReg;
  switch (from.scalar) {
    case ScalarType::Float64:
      widened =
          lanes == 1 ? e.rrm(Opcode::vcvtsd2ss, 16, a, a) : e.rr(Opcode::vcvtpd2ps, n4, a, n8);
      break;
    case ScalarType::Float16:
      widened = e.rr(Opcode::vcvtph2ps, n4, a, n2);
      break;
    default:
      widened = e.rri(Opcode::vpslld, n4, e.rr(Opcode::vpmovzxwd, n4, a, n2), 16);
      break;
  }
  return cast_float(e, single, to, widened);
}

}  // namespace tiny::x86
