#include "render/x86/select/emitter.h"

#include "base/error.h"
#include "render/x86/select/dead_code.h"

namespace tiny::x86 {

void put(Inst& inst, size_t at, const Operand& b) {
  if (b.is_imm) {
    inst.flags |= kUseImm;
    inst.imm = b.imm;
  } else if (b.reg != kNoReg) {
    inst.src[at] = b.reg;
  } else {
    inst.mem = b.mem;
  }
}

Emitter::Emitter(const LinearProgram& program, bool avx512) : program_(program) {
  out_.avx512 = avx512;
  out_.stop = program.stop;
  out_.code.reserve(program.ops.size() * 2);
  out_.regs.reserve(program.ops.size() * 2);
  preheaders_.emplace_back();
}

void Emitter::unsupported(const char* why) const {
  const LinearOp& o = program_.ops[at_];
  throw_error(Status::Unsupported, "x86: op %", at_, " ", tiny::info(o.op).name, " of ",
              to_string(o.dtype), ": ", why);
}

Inst& Emitter::emit(Opcode opcode, int64_t width, VReg dst, VReg a, VReg b, VReg c) {
  Inst& i = out_.code.emplace_back();
  i.op = opcode;
  i.width = static_cast<uint8_t>(width);
  i.width2 = i.width;
  i.dst = dst;
  i.src = {a, b, c};
  i.origin = at_;
  return i;
}

VReg Emitter::rr(Opcode opcode, int64_t width, VReg a, int64_t width2, VReg dst) {
  dst = or_vec(dst, width_for(width));
  Inst& i = emit(opcode, width, dst, a);
  if (width2) i.width2 = static_cast<uint8_t>(width2);
  return dst;
}

VReg Emitter::rri(Opcode opcode, int64_t width, VReg a, int64_t imm, VReg dst) {
  dst = or_vec(dst, width);
  emit(opcode, width, dst, a).imm = imm;
  return dst;
}

VReg Emitter::rrm(Opcode opcode, int64_t width, VReg a, const Operand& b, VReg dst) {
  dst = or_vec(dst, width);
  put(emit(opcode, width, dst, a), 1, b);
  return dst;
}

VReg Emitter::rrmi(Opcode opcode, int64_t width, VReg a, const Operand& b, int64_t imm, VReg dst) {
  dst = or_vec(dst, width);
  Inst& i = emit(opcode, width, dst, a);
  put(i, 1, b);
  i.imm = imm;
  return dst;
}

VReg Emitter::krm(Opcode opcode, int64_t width, VReg a, const Operand& b, int64_t imm) {
  const VReg dst = mask_reg();
  Inst& i = emit(opcode, width, dst, a);
  put(i, 1, b);
  i.imm = imm;
  return dst;
}

VReg Emitter::move(RegClass cls, int64_t width, VReg from, VReg dst) {
  if (dst == kNoReg) dst = reg_of(cls, width);
  const Opcode opcode = cls == RegClass::Int   ? Opcode::IMove
                        : cls == RegClass::Vec ? Opcode::VMove
                                               : Opcode::KMove;
  emit(opcode, width, dst, from);
  return dst;
}

void Emitter::store_past_caches(const Mem& mem, VReg value, int64_t bytes) {
  emit(Opcode::VStoreBypass, bytes, int_reg(), value).mem = mem;
  bypasses_ = true;
}

uint32_t Emitter::add_slots(int64_t count, int64_t bytes) {
  const auto first = static_cast<uint32_t>(out_.slots.size());
  out_.slots.insert(out_.slots.end(), static_cast<size_t>(count), static_cast<uint8_t>(bytes));
  return first;
}

VReg Emitter::reg_of(RegClass cls, int64_t width) {
  return out_.add_reg(cls, cls == RegClass::Vec ? width : 8);
}

RegClass Emitter::class_of(DType d) const {
  if (in_int(d)) return RegClass::Int;
  return is_mask(d) && avx512() ? RegClass::Mask : RegClass::Vec;
}

uint32_t Emitter::open_loop() {
  const uint32_t outer = loop_;
  loop_ = static_cast<uint32_t>(preheaders_.size());
  preheaders_.emplace_back();
  emit(Opcode::Preheader, 0).imm = loop_;
  return outer;
}

void Emitter::emit_before(uint32_t loop, Inst inst) {
  inst.origin = at_;
  preheaders_[loop].push_back(inst);
}

void Emitter::splice_preheaders() {
  std::vector<Inst> code;
  size_t size = out_.code.size();
  for (const auto& p : preheaders_) size += p.size();
  code.reserve(size);
  for (const Inst& i : out_.code) {
    if (i.op != Opcode::Preheader) {
      code.push_back(i);
      continue;
    }
    const auto& p = preheaders_[static_cast<size_t>(i.imm)];
    code.insert(code.end(), p.begin(), p.end());
  }
  out_.code = std::move(code);
}

MachineProgram Emitter::finish() {
  if (bypasses_) emit(Opcode::Fence, 0);
  splice_preheaders();
  drop_dead(out_);
  return std::move(out_);
}

}  // namespace tiny::x86
