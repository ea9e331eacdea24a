// The machine program as it is made: instructions behind each other, virtual registers, and the
// constants that are made before the loops that use them.
//
// reads: which linear op code is made for, and which loop is open.
// makes: the machine program.
#pragma once

#include <bit>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "render/x86/machine.h"

namespace tiny::x86 {

// Widths of registers in bytes, and what of a dtype's values is kept in which.
inline bool in_int(DType d) {
  return d.lanes == 1 && !d.is_float();
}
inline bool is_mask(DType d) {
  return d.lanes > 1 && d.is_bool();
}
inline int64_t width_for(int64_t bytes) {
  return bytes <= 16 ? 16 : bytes;
}
inline int64_t width_of(DType d) {
  return width_for(d.lanes * d.bytes());
}
inline int64_t int_width(DType d) {
  return d.bytes() == 8 ? 8 : 4;
}
// Of a lane's bytes: the row of a table of instructions.
inline size_t log_of(int64_t size) {
  return static_cast<size_t>(std::countr_zero(static_cast<uint64_t>(size)));
}

// A source of an instruction: a register, memory, or an immediate.
struct Operand {
  VReg reg = kNoReg;
  Mem mem;
  bool is_imm = false;
  int64_t imm = 0;

  Operand(VReg r) : reg(r) {}  // NOLINT: a register is an operand.
  explicit Operand(const Mem& m) : mem(m) {}
  static Operand immediate(int64_t value) {
    Operand o(kNoReg);
    o.is_imm = true;
    o.imm = value;
    return o;
  }
};

// `b` as the source at `at`.
void put(Inst& inst, size_t at, const Operand& b);

class Emitter {
 public:
  Emitter(const LinearProgram& program, bool avx512);

  bool avx512() const { return out_.avx512; }
  int64_t register_bytes() const { return avx512() ? 64 : 32; }
  // The linear op that code is made for from here on.
  void make_for(LinearId id) { at_ = id; }
  [[noreturn]] void unsupported(const char* why) const;

  // Instructions.
  Inst& emit(Opcode opcode, int64_t width, VReg dst = kNoReg, VReg a = kNoReg, VReg b = kNoReg,
             VReg c = kNoReg);
  // One with a register and: nothing else, an immediate, an operand, or both; its result.
  VReg rr(Opcode opcode, int64_t width, VReg a, int64_t width2 = 0, VReg dst = kNoReg);
  VReg rri(Opcode opcode, int64_t width, VReg a, int64_t imm, VReg dst = kNoReg);
  VReg rrm(Opcode opcode, int64_t width, VReg a, const Operand& b, VReg dst = kNoReg);
  VReg rrmi(Opcode opcode, int64_t width, VReg a, const Operand& b, int64_t imm, VReg dst = kNoReg);
  // One whose result is an AVX-512 mask.
  VReg krm(Opcode opcode, int64_t width, VReg a, const Operand& b, int64_t imm);
  VReg move(RegClass cls, int64_t width, VReg from, VReg dst = kNoReg);
  void store_past_caches(const Mem& mem, VReg value, int64_t bytes);

  // Registers and labels.
  VReg int_reg() { return out_.add_reg(RegClass::Int, 8); }
  VReg vec_reg(int64_t width) { return out_.add_reg(RegClass::Vec, width); }
  VReg mask_reg() { return out_.add_reg(RegClass::Mask, 8); }
  VReg reg_of(RegClass cls, int64_t width);
  VReg or_vec(VReg dst, int64_t width) { return dst != kNoReg ? dst : vec_reg(width); }
  VReg or_int(VReg dst) { return dst != kNoReg ? dst : int_reg(); }
  RegClass class_of(DType d) const;
  uint32_t new_label() { return out_.labels++; }
  // So many slots of the frame side by side; the first.
  uint32_t add_slots(int64_t count, int64_t bytes);

  // Code before the innermost open loop, or at the entry.
  uint32_t open_loop();  // the loop around it
  void close_loop(uint32_t outer) { loop_ = outer; }
  void emit_before_loop(Inst inst) { emit_before(loop_, inst); }
  void emit_at_entry(Inst inst) { emit_before(0, inst); }

  // Constants.
  uint32_t pool_lane(uint64_t bits, int64_t lane);
  uint32_t pool_bytes(std::vector<std::byte> bytes);
  VReg pool_reg(uint32_t pool, int64_t width);
  VReg lanes_const(uint64_t bits, int64_t lane, int64_t width) {
    return pool_reg(pool_lane(bits, lane), width);
  }
  VReg int_const(int64_t value);
  VReg vector_const(DType dtype, uint64_t bits);
  VReg mask_const(uint64_t bits);  // AVX-512: one bit a lane

  // The whole program, where no code follows.
  MachineProgram finish();

 private:
  void emit_before(uint32_t loop, Inst inst);
  void splice_preheaders();

  const LinearProgram& program_;
  MachineProgram out_;
  LinearId at_ = 0;
  bool bypasses_ = false;                      // some store passes the caches
  std::vector<std::vector<Inst>> preheaders_;  // 0: the entry
  uint32_t loop_ = 0;
  std::map<std::pair<uint64_t, int64_t>, uint32_t> lane_pool_;
  std::map<std::string, uint32_t> byte_pool_;
  std::unordered_map<uint64_t, VReg> pool_regs_;
  std::map<std::pair<uint32_t, uint64_t>, VReg> constant_masks_;  // by loop and bits
};

}  // namespace tiny::x86
