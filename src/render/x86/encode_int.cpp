// Integer instructions, jumps and checks.
#include "render/x86/encoder.h"

#include "base/error.h"

namespace tiny::x86 {

using Xbyak::CodeGenerator;
using Xbyak::Label;
using Xbyak::Reg32;
using Xbyak::Reg64;

namespace {

constexpr int kRax = 0, kRdx = 2;

Cond opposite(Cond c) {
  return static_cast<Cond>(static_cast<uint8_t>(c) ^ 1);
}

}  // namespace

bool Encoder::encode_int(const Inst& inst) {
  switch (inst.op) {
    case Opcode::IArgs:
      move_int(number(inst.dst), 7);
      return true;
    case Opcode::IMove:
      move_int(number(inst.dst), number(inst.src[0]));
      return true;
    case Opcode::IMoveImm:
      int_move_imm(inst);
      return true;
    case Opcode::ILoad:
      int_load(inst);
      return true;
    case Opcode::IStore:
      int_store(inst);
      return true;
    case Opcode::Prefetch:
      c_.prefetcht1(memory(inst.mem));
      return true;
    case Opcode::IAdd:
    case Opcode::ISub:
    case Opcode::IMul:
    case Opcode::IAnd:
    case Opcode::IOr:
    case Opcode::IXor:
      int_alu(inst);
      return true;
    case Opcode::INeg:
      move_int(number(inst.dst), number(inst.src[0]));
      c_.neg(sized(inst.dst, inst.width));
      return true;
    case Opcode::INot:
      move_int(number(inst.dst), number(inst.src[0]));
      c_.not_(sized(inst.dst, inst.width));
      return true;
    case Opcode::IShl:
    case Opcode::IShr:
    case Opcode::ISar:
      int_shift(inst);
      return true;
    case Opcode::ILea:
      c_.lea(r64(inst.dst), memory(inst.mem));
      return true;
    case Opcode::IExtend:
      int_extend(inst);
      return true;
    case Opcode::IBzhi:
      c_.bzhi(r64(inst.dst), r64(inst.src[0]), r64(inst.src[1]));
      return true;
    case Opcode::IDeposit:
      c_.pdep(r64(inst.dst), r64(inst.src[0]), r64(inst.src[1]));
      return true;
    case Opcode::IPopcnt:
      c_.popcnt(r64(inst.dst), r64(inst.src[0]));
      return true;
    case Opcode::ISetCompare:
      compare(inst);
      set_condition(inst.cond, inst.dst);
      return true;
    case Opcode::ICompareSelect:
    case Opcode::ISelect:
      int_select(inst);
      return true;
    case Opcode::IDivide:
      divide(inst);
      return true;
    case Opcode::FSetCompare:
      if (inst.width2 == 4)
        c_.vucomiss(vec_of(inst.src[0], 16), vec_of(inst.src[1], 16));
      else
        c_.vucomisd(vec_of(inst.src[0], 16), vec_of(inst.src[1], 16));
      set_condition(inst.cond, inst.dst);
      return true;
    default:
      return false;
  }
}

void Encoder::int_select(const Inst& inst) {
  const bool by_bool = inst.op == Opcode::ISelect;
  if (by_bool)
    c_.test(r32(inst.src[0]), r32(inst.src[0]));
  else
    compare(inst);
  const Cond cond = by_bool ? Cond::NE : inst.cond;
  const int d = number(inst.dst), yes = number(inst.src[by_bool ? 1 : 0]),
            no = number(inst.src[by_bool ? 2 : 1]);
  if (d == yes) return move_if(opposite(cond), d, no);
  move_int(d, no);  // leaves the flags
  move_if(cond, d, yes);
}

void Encoder::move_int(int dst, int src) {
  if (dst != src) c_.mov(Reg64(dst), Reg64(src));
}

void Encoder::int_move_imm(const Inst& inst) {
  if (inst.imm == 0)
    c_.xor_(r32(inst.dst), r32(inst.dst));
  else if (inst.imm > 0 && inst.imm <= UINT32_MAX)
    c_.mov(r32(inst.dst), static_cast<uint32_t>(inst.imm));
  else
    c_.mov(r64(inst.dst), static_cast<uint64_t>(inst.imm));
}

void Encoder::int_load(const Inst& inst) {
  const bool is_signed = inst.flags & kSigned;
  switch (inst.width2) {
    case 1:
      if (is_signed)
        c_.movsx(r32(inst.dst), memory(inst.mem, 8));
      else
        c_.movzx(r32(inst.dst), memory(inst.mem, 8));
      return;
    case 2:
      if (is_signed)
        c_.movsx(r32(inst.dst), memory(inst.mem, 16));
      else
        c_.movzx(r32(inst.dst), memory(inst.mem, 16));
      return;
    case 4:
      c_.mov(r32(inst.dst), memory(inst.mem, 32));
      return;
    default:
      c_.mov(r64(inst.dst), memory(inst.mem, 64));
  }
}

void Encoder::int_store(const Inst& inst) {
  const VReg v = inst.src[0];
  switch (inst.width) {
    case 1:
      return c_.mov(memory(inst.mem, 8), r8(v));
    case 2:
      return c_.mov(memory(inst.mem, 16), Xbyak::Reg16(number(v)));
    case 4:
      return c_.mov(memory(inst.mem, 32), r32(v));
    default:
      return c_.mov(memory(inst.mem, 64), r64(v));
  }
}

void Encoder::int_alu(const Inst& inst) {
  const bool wide = inst.width == 8, immediate = inst.flags & kUseImm;
  const auto reg = [&](int n) { return wide ? Xbyak::Reg(Reg64(n)) : Xbyak::Reg(Reg32(n)); };
  const int d = number(inst.dst), a = number(inst.src[0]);
  const auto imm = static_cast<uint32_t>(inst.imm);
  if (inst.op == Opcode::IMul && immediate)
    return c_.imul(reg(d), reg(a), static_cast<int>(inst.imm));
  int b = immediate || has_memory(inst) ? -1 : number(inst.src[1]);
  if (b >= 0 && d == b && d != a)
    b = a;  // these commute; a subtraction's second operand is never dst
  else if (d != a && inst.op == Opcode::IAdd && b >= 0)
    return c_.lea(Reg64(d), c_.ptr[Reg64(a) + Reg64(b)]);
  else if (d != a && inst.op == Opcode::IAdd && immediate)
    return c_.lea(Reg64(d), c_.ptr[Reg64(a) + static_cast<size_t>(inst.imm)]);
  else
    move_int(d, a);
  const auto apply = [&](const auto& with) {
    switch (inst.op) {
      case Opcode::IAdd:
        return c_.add(reg(d), with);
      case Opcode::ISub:
        return c_.sub(reg(d), with);
      case Opcode::IAnd:
        return c_.and_(reg(d), with);
      case Opcode::IOr:
        return c_.or_(reg(d), with);
      default:
        return c_.xor_(reg(d), with);
    }
  };
  if (inst.op == Opcode::IMul) {
    if (b >= 0) return c_.imul(reg(d), reg(b));
    return c_.imul(reg(d), memory(inst.mem, inst.width * 8));
  }
  if (immediate) return apply(imm);
  if (b >= 0) return apply(reg(b));
  apply(memory(inst.mem, inst.width * 8));
}

void Encoder::int_shift(const Inst& inst) {
  const bool wide = inst.width == 8;
  if (inst.flags & kUseImm) {
    move_int(number(inst.dst), number(inst.src[0]));
    if (inst.imm == 0) return;
    const Xbyak::Reg d = wide ? Xbyak::Reg(r64(inst.dst)) : Xbyak::Reg(r32(inst.dst));
    const auto count = static_cast<int>(inst.imm);
    if (inst.op == Opcode::IShl)
      c_.shl(d, count);
    else if (inst.op == Opcode::IShr)
      c_.shr(d, count);
    else
      c_.sar(d, count);
    return;
  }
  const auto shift = [&](const auto& d, const auto& a, const auto& count) {
    if (inst.op == Opcode::IShl)
      c_.shlx(d, a, count);
    else if (inst.op == Opcode::IShr)
      c_.shrx(d, a, count);
    else
      c_.sarx(d, a, count);
  };
  if (wide)
    shift(r64(inst.dst), r64(inst.src[0]), r64(inst.src[1]));
  else
    shift(r32(inst.dst), r32(inst.src[0]), r32(inst.src[1]));
}

void Encoder::int_extend(const Inst& inst) {
  const bool is_signed = inst.flags & kSigned;
  if (inst.width2 == 4) {
    if (is_signed)
      c_.movsxd(r64(inst.dst), r32(inst.src[0]));
    else
      c_.mov(r32(inst.dst), r32(inst.src[0]));
  } else if (inst.width2 == 2) {
    if (is_signed)
      c_.movsx(r32(inst.dst), Xbyak::Reg16(number(inst.src[0])));
    else
      c_.movzx(r32(inst.dst), Xbyak::Reg16(number(inst.src[0])));
  } else {
    if (is_signed)
      c_.movsx(r32(inst.dst), r8(inst.src[0]));
    else
      c_.movzx(r32(inst.dst), r8(inst.src[0]));
  }
}

void Encoder::compare(const Inst& inst) {
  const bool wide = inst.width == 8;
  const Xbyak::Reg a = wide ? Xbyak::Reg(r64(inst.src[0])) : Xbyak::Reg(r32(inst.src[0]));
  if (inst.flags & kUseImm) {
    if (inst.imm == 0)
      c_.test(a, a);
    else
      c_.cmp(a, static_cast<uint32_t>(inst.imm));
  } else if (has_memory(inst)) {
    c_.cmp(a, memory(inst.mem, inst.width * 8));
  } else {
    c_.cmp(a, wide ? Xbyak::Reg(r64(inst.src[1])) : Xbyak::Reg(r32(inst.src[1])));
  }
}

void Encoder::set_condition(Cond cond, VReg dst) {
  const int d = number(dst);
  c_.db(0x40 | (d >> 3));
  c_.db(0x0F);
  c_.db(0x90 | static_cast<int>(cond));
  c_.db(0xC0 | (d & 7));
  c_.movzx(r32(dst), r8(dst));
}

void Encoder::move_if(Cond cond, int dst, int src) {
  c_.db(0x48 | (dst >> 3) << 2 | (src >> 3));
  c_.db(0x0F);
  c_.db(0x40 | static_cast<int>(cond));
  c_.db(0xC0 | (dst & 7) << 3 | (src & 7));
}

void Encoder::jump_if(Cond cond, const Label& label) {
  constexpr auto kNear = CodeGenerator::T_NEAR;
  switch (cond) {
    case Cond::B:
      return c_.jb(label, kNear);
    case Cond::AE:
      return c_.jae(label, kNear);
    case Cond::E:
      return c_.je(label, kNear);
    case Cond::NE:
      return c_.jne(label, kNear);
    case Cond::BE:
      return c_.jbe(label, kNear);
    case Cond::A:
      return c_.ja(label, kNear);
    case Cond::NP:
      return c_.jnp(label, kNear);
    case Cond::L:
      return c_.jl(label, kNear);
    case Cond::GE:
      return c_.jge(label, kNear);
    case Cond::LE:
      return c_.jle(label, kNear);
    case Cond::G:
      return c_.jg(label, kNear);
  }
}

bool Encoder::encode_control(const Inst& inst) {
  switch (inst.op) {
    case Opcode::LoopTop:
      c_.align(16);
      c_.L(labels_[inst.label]);
      return true;
    case Opcode::Label:
      c_.L(labels_[inst.label]);
      return true;
    case Opcode::Jump:
      c_.jmp(labels_[inst.label], CodeGenerator::T_NEAR);
      return true;
    case Opcode::JumpIfZero:
      c_.test(r32(inst.src[0]), r32(inst.src[0]));
      jump_if(Cond::E, labels_[inst.label]);
      return true;
    case Opcode::JumpCompare:
    case Opcode::LoopBack:
      compare(inst);
      jump_if(inst.cond, labels_[inst.label]);
      return true;
    case Opcode::Poll: {
      ColdPoll& cold = cold_polls_.emplace_back();
      cold.leave = inst.label;
      cold.poll = number(inst.src[0]);
      c_.jmp(cold.enter, CodeGenerator::T_NEAR);
      c_.L(cold.back);
      return true;
    }
    case Opcode::CheckFailed: {
      c_.test(r32(inst.src[0]), r32(inst.src[0]));
      ColdCheck& cold = cold_.emplace_back();
      cold.status = number(inst.src[1]);
      cold.position = number(inst.src[2]);
      cold.check = inst.imm;
      c_.je(cold.enter, CodeGenerator::T_NEAR);
      c_.L(cold.back);
      return true;
    }
    default:
      return false;
  }
}

// By zero: 0 and 0.  The lowest value by -1 wraps.  Neither may reach the instruction, which traps.
void Encoder::divide(const Inst& inst) {
  if (inst.flags & kSigned) return divide_signed(inst);
  const bool wide = inst.width == 8;
  const auto kind = static_cast<DivideKind>(inst.imm);
  const bool modulo = kind == DivideKind::FloorMod || kind == DivideKind::TruncMod;
  const auto reg = [&](int n) { return wide ? Xbyak::Reg(Reg64(n)) : Xbyak::Reg(Reg32(n)); };
  const int a = number(inst.src[0]), b = number(inst.src[1]), d = number(inst.dst);
  Label zero, end;
  const bool known = inst.flags & kKnownDivisor;
  if (!known) {
    c_.test(reg(b), reg(b));
    c_.je(zero, CodeGenerator::T_NEAR);
  }
  c_.mov(reg(kRax), reg(a));
  c_.xor_(Reg32(kRdx), Reg32(kRdx));
  c_.div(reg(b));
  move_int(d, modulo ? kRdx : kRax);
  if (!known) {
    c_.jmp(end, CodeGenerator::T_NEAR);
    c_.L(zero);
    c_.xor_(Reg32(d), Reg32(d));
    c_.L(end);
  }
}

void Encoder::divide_signed(const Inst& inst) {
  const bool wide = inst.width == 8, known = inst.flags & kKnownDivisor;
  const auto kind = static_cast<DivideKind>(inst.imm);
  const bool modulo = kind == DivideKind::FloorMod || kind == DivideKind::TruncMod;
  const auto reg = [&](int n) { return wide ? Xbyak::Reg(Reg64(n)) : Xbyak::Reg(Reg32(n)); };
  const int a = number(inst.src[0]), b = number(inst.src[1]), d = number(inst.dst);
  Label zero, minus_one, end, done;
  if (!known) {
    c_.test(reg(b), reg(b));
    c_.je(zero, CodeGenerator::T_NEAR);
    c_.cmp(reg(b), static_cast<uint32_t>(-1));
    c_.je(minus_one, CodeGenerator::T_NEAR);
  }
  c_.mov(reg(kRax), reg(a));
  if (wide)
    c_.cqo();
  else
    c_.cdq();
  c_.idiv(reg(b));
  if (kind == DivideKind::FloorDiv) {  // one less if the remainder has not the divisor's sign
    c_.test(reg(kRdx), reg(kRdx));
    c_.je(done, CodeGenerator::T_NEAR);
    c_.xor_(reg(kRdx), reg(b));
    c_.jns(done, CodeGenerator::T_NEAR);
    c_.sub(reg(kRax), 1);
    c_.L(done);
  } else if (kind == DivideKind::FloorMod) {
    c_.mov(reg(kRax), reg(kRdx));
    c_.test(reg(kRdx), reg(kRdx));
    c_.je(done, CodeGenerator::T_NEAR);
    c_.xor_(reg(kRax), reg(b));
    c_.jns(done, CodeGenerator::T_NEAR);
    c_.add(reg(kRdx), reg(b));
    c_.L(done);
  }
  if (known) return move_int(d, modulo ? kRdx : kRax);
  // The operands are still whole: dst, which may share their register, is written last on each
  // path.
  move_int(d, modulo ? kRdx : kRax);
  c_.jmp(end, CodeGenerator::T_NEAR);
  c_.L(minus_one);
  if (modulo) {
    c_.xor_(Reg32(d), Reg32(d));
  } else {
    move_int(d, a);
    c_.neg(reg(d));
  }
  c_.jmp(end, CodeGenerator::T_NEAR);
  c_.L(zero);
  c_.xor_(Reg32(d), Reg32(d));
  c_.L(end);
}

}  // namespace tiny::x86
