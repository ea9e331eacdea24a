#include "render/x86/select/comparisons.h"

#include "render/x86/select/integers.h"
#include "render/x86/select/masks.h"

namespace tiny::x86 {

namespace {

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

// AVX2 has equality and signed greater-than.
VReg compare_int_avx2(Emitter& e, Op op, DType dtype, VReg a, VReg b) {
  constexpr Opcode kEqual[] = {Opcode::vpcmpeqb, Opcode::vpcmpeqw, Opcode::vpcmpeqd,
                               Opcode::vpcmpeqq};
  constexpr Opcode kGreater[] = {Opcode::vpcmpgtb, Opcode::vpcmpgtw, Opcode::vpcmpgtd,
                                 Opcode::vpcmpgtq};
  const int64_t width = width_of(dtype), size = dtype.bytes();
  if (op == Op::Equal || op == Op::NotEqual) {
    const VReg equal = e.rrm(kEqual[log_of(size)], width, a, b);
    return op == Op::Equal ? equal : mask_not(e, width, equal);
  }
  if (!dtype.is_signed()) {
    const VReg sign = e.lanes_const(uint64_t{1} << (8 * size - 1), size, width);
    a = e.rrm(Opcode::vxorps, width, a, sign);
    b = e.rrm(Opcode::vxorps, width, b, sign);
  }
  if (op == Op::Less) return e.rrm(kGreater[log_of(size)], width, b, a);
  return mask_not(e, width, e.rrm(kGreater[log_of(size)], width, a, b));
}

}  // namespace

VReg compare(Emitter& e, Op op, DType dtype, VReg a, const Operand& b) {
  const int64_t width = width_of(dtype);
  if (dtype.is_float()) {
    if (dtype.bytes() < 4) e.unsupported("floats of 16 bits are compared as float32");
    if (!e.avx512())
      return e.rrmi(dtype.bytes() == 4 ? Opcode::vcmpps : Opcode::vcmppd, width, a, b,
                    float_predicate(op));
    return e.krm(dtype.bytes() == 4 ? Opcode::KCmpps : Opcode::KCmppd, width, a, b,
                 float_predicate(op));
  }
  if (!e.avx512()) return compare_int_avx2(e, op, dtype, a, as_reg(e, dtype, b));
  constexpr Opcode kSigned[] = {Opcode::vpcmpb, Opcode::vpcmpw, Opcode::vpcmpd, Opcode::vpcmpq};
  constexpr Opcode kUnsigned[] = {Opcode::vpcmpub, Opcode::vpcmpuw, Opcode::vpcmpud,
                                  Opcode::vpcmpuq};
  return e.krm((dtype.is_signed() ? kSigned : kUnsigned)[log_of(dtype.bytes())], width, a, b,
               int_predicate(op));
}

VReg compare_floats(Emitter& e, Op op, DType dtype, VReg a, VReg b) {
  if (dtype.bytes() < 4) e.unsupported("floats of 16 bits are compared as float32");
  const VReg dst = e.int_reg();
  if (op == Op::Less || op == Op::LessEqual) {
    Inst& i = e.emit(Opcode::FSetCompare, 16, dst, b, a);
    i.width2 = static_cast<uint8_t>(dtype.bytes());
    i.cond = op == Op::Less ? Cond::A : Cond::AE;
    return dst;
  }
  const bool single = dtype.bytes() == 4;
  if (e.avx512()) {
    e.emit(Opcode::KToInt, 8, dst,
           e.krm(single ? Opcode::KCmpss : Opcode::KCmpsd, 16, a, b, float_predicate(op)));
    return dst;
  }
  const VReg mask = e.rrmi(single ? Opcode::vcmpss : Opcode::vcmpsd, 16, a, b, float_predicate(op));
  e.emit(Opcode::VToInt, 16, dst, mask).width2 = 4;
  return int_plain(e, Opcode::IAnd, 4, dst, Operand::immediate(1));
}

}  // namespace tiny::x86
