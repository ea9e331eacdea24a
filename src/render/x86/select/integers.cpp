#include "render/x86/select/integers.h"

#include <bit>

#include "base/error.h"
#include "render/x86/select/loads.h"

namespace tiny::x86 {

namespace {

bool power_of_two(int64_t n) {
  return n > 0 && (n & (n - 1)) == 0;
}

int64_t log2_of(int64_t n) {
  return std::countr_zero(static_cast<uint64_t>(n));
}

}  // namespace

VReg as_reg(Emitter& e, DType dtype, const Operand& b) {
  if (b.is_imm) return e.int_const(b.imm);
  return b.reg != kNoReg ? b.reg : load_plain(e, dtype, b.mem);
}

VReg int_plain(Emitter& e, Opcode opcode, int64_t width, VReg a, const Operand& b, VReg dst) {
  dst = e.or_int(dst);
  put(e.emit(opcode, width, dst, a), 1, b);
  return dst;
}

// 8- and 16-bit values are kept extended; wider ones are as they are.
VReg canonical(Emitter& e, DType dtype, VReg value, VReg dst) {
  if (dtype.bytes() >= 4) return value;
  dst = e.or_int(dst);
  Inst& i = e.emit(Opcode::IExtend, 4, dst, value);
  i.width2 = static_cast<uint8_t>(dtype.bytes());
  if (dtype.is_signed()) i.flags |= kSigned;
  return dst;
}

VReg int_select(Emitter& e, VReg condition_reg, VReg a, VReg b, VReg dst) {
  dst = e.or_int(dst);
  e.emit(Opcode::ISelect, 8, dst, condition_reg, a, b);
  return dst;
}

Cond condition(Op op, DType dtype) {
  const bool is_signed = dtype.is_signed();
  switch (op) {
    case Op::Less:
      return is_signed ? Cond::L : Cond::B;
    case Op::LessEqual:
      return is_signed ? Cond::LE : Cond::BE;
    case Op::Equal:
      return Cond::E;
    case Op::NotEqual:
      return Cond::NE;
    case Op::Max:
      return is_signed ? Cond::GE : Cond::AE;
    default:
      invariant(op == Op::Min, "an op with a condition");
      return is_signed ? Cond::LE : Cond::BE;
  }
}

VReg int_compare(Emitter& e, Op op, DType dtype, VReg a, const Operand& b) {
  const VReg dst = e.int_reg();
  Inst& i = e.emit(Opcode::ISetCompare, int_width(dtype), dst, a);
  put(i, 1, b);
  i.cond = condition(op, dtype);
  return dst;
}

namespace {

VReg int_divide(Emitter& e, Op op, DType dtype, VReg a, const Operand& b, VReg dst) {
  const int64_t width = int_width(dtype);
  const bool modulo = op == Op::FloorMod || op == Op::TruncMod;
  const bool floors = op == Op::FloorDiv || op == Op::FloorMod;
  if (b.is_imm && b.imm == 0) return e.int_const(0);
  if (b.is_imm && power_of_two(b.imm) && (floors || !dtype.is_signed())) {
    if (modulo) return int_plain(e, Opcode::IAnd, width, a, Operand::immediate(b.imm - 1), dst);
    const Opcode shift = dtype.is_signed() ? Opcode::ISar : Opcode::IShr;
    return int_plain(e, shift, width, a, Operand::immediate(log2_of(b.imm)), dst);
  }
  const VReg divisor = as_reg(e, dtype, b);
  dst = e.or_int(dst);
  Inst& i = e.emit(Opcode::IDivide, width, dst, a, divisor);
  DivideKind kind = modulo ? DivideKind::TruncMod : DivideKind::TruncDiv;
  if (floors) kind = modulo ? DivideKind::FloorMod : DivideKind::FloorDiv;
  i.imm = static_cast<int64_t>(kind);
  if (dtype.is_signed()) i.flags |= kSigned;
  if (b.is_imm && b.imm != -1) i.flags |= kKnownDivisor;
  return canonical(e, dtype, dst, dst);
}

// A count at or above the width (as an unsigned number) leaves 0, or the sign.
VReg int_shift(Emitter& e, Op op, DType dtype, VReg a, const Operand& b) {
  const int64_t width = int_width(dtype), bits = dtype.bits();
  const bool keeps_sign = op == Op::Shr && dtype.is_signed();
  const Opcode opcode = op == Op::Shl ? Opcode::IShl : keeps_sign ? Opcode::ISar : Opcode::IShr;
  if (b.is_imm) {
    const bool beyond = b.imm < 0 || b.imm >= bits;
    if (beyond && !keeps_sign) return e.int_const(0);
    return canonical(e, dtype,
                     int_plain(e, opcode, width, a, Operand::immediate(beyond ? bits - 1 : b.imm)));
  }
  const VReg count = as_reg(e, dtype, b);
  if (keeps_sign) {
    const VReg clamped = e.int_reg();
    e.emit(Opcode::ICompareSelect, width, clamped, count, e.int_const(bits - 1)).cond = Cond::BE;
    return int_plain(e, opcode, width, a, clamped);
  }
  const VReg shifted = canonical(e, dtype, int_plain(e, opcode, width, a, count));
  const VReg inside = e.int_reg();
  Inst& i = e.emit(Opcode::ISetCompare, width, inside, count);
  put(i, 1, Operand::immediate(bits));
  i.cond = Cond::B;
  return int_select(e, inside, shifted, e.int_const(0));
}

}  // namespace

VReg int_binary(Emitter& e, Op op, DType dtype, VReg a, const Operand& b, VReg dst) {
  const int64_t width = int_width(dtype);
  const bool logic = dtype.is_bool();
  Opcode opcode{};
  switch (op) {
    case Op::Add:
      opcode = logic ? Opcode::IOr : Opcode::IAdd;
      break;
    case Op::Sub:
      opcode = logic ? Opcode::IXor : Opcode::ISub;
      break;
    case Op::Mul:
      if (!logic && b.is_imm && power_of_two(b.imm))
        return canonical(
            e, dtype, int_plain(e, Opcode::IShl, width, a, Operand::immediate(log2_of(b.imm)), dst),
            dst);
      opcode = logic ? Opcode::IAnd : Opcode::IMul;
      break;
    case Op::And:
      opcode = Opcode::IAnd;
      break;
    case Op::Or:
      opcode = Opcode::IOr;
      break;
    case Op::Xor:
      opcode = Opcode::IXor;
      break;
    case Op::Max:
    case Op::Min: {
      if (logic) return int_plain(e, op == Op::Max ? Opcode::IOr : Opcode::IAnd, 4, a, b, dst);
      const VReg other = as_reg(e, dtype, b);
      dst = e.or_int(dst);
      e.emit(Opcode::ICompareSelect, width, dst, a, other).cond = condition(op, dtype);
      return dst;
    }
    case Op::Shl:
    case Op::Shr:
      return int_shift(e, op, dtype, a, b);
    case Op::FloorDiv:
    case Op::FloorMod:
    case Op::TruncDiv:
    case Op::TruncMod:
      return int_divide(e, op, dtype, a, b, dst);
    default:
      e.unsupported("is not an integer op");
  }
  return canonical(e, dtype, int_plain(e, opcode, width, a, b, dst), dst);
}

VReg int_unary(Emitter& e, Op op, DType dtype, VReg a) {
  const int64_t width = int_width(dtype);
  switch (op) {
    case Op::Not:
      if (dtype.is_bool()) return int_plain(e, Opcode::IXor, 4, a, Operand::immediate(1));
      break;
    case Op::Neg:
      if (dtype.is_bool()) return a;
      break;
    case Op::Abs: {
      if (!dtype.is_signed()) return a;
      const VReg sign = int_plain(e, Opcode::ISar, width, a, Operand::immediate(8 * width - 1));
      const VReg flipped = int_plain(e, Opcode::IXor, width, a, sign);
      return canonical(e, dtype, int_plain(e, Opcode::ISub, width, flipped, sign));
    }
    default:
      e.unsupported("is not an integer op");
  }
  const VReg dst = e.int_reg();
  e.emit(op == Op::Neg ? Opcode::INeg : Opcode::INot, width, dst, a);
  return canonical(e, dtype, dst);
}

}  // namespace tiny::x86
