// The encoder proper, over Xbyak (a header-only assembler; nothing of it leaves render/x86).
#pragma once

#define XBYAK_NO_OP_NAMES
#include <xbyak/xbyak.h>

#include <vector>

#include "render/x86/encode.h"

namespace tiny::x86 {

class Encoder {
 public:
  Encoder(MachineProgram& program, const Allocation& allocation, uint8_t* buffer, size_t size);
  // The bytes written to the buffer; throws Xbyak::Error if they do not fit.
  size_t run(std::vector<CodeMark>* marks);

 private:
  // encode.cpp: the frame, the pool, instructions by shape.
  void lay_out_pool();
  void lay_out_frame();
  void prologue();
  void epilogue();
  void emit_pool();
  void emit_cold_checks();
  void emit_cold_polls();
  void encode(const Inst& inst);
  bool encode_shaped(const Inst& inst);
  void compare_to_mask(const Inst& inst, const Xbyak::Opmask& k, const Xbyak::Zmm& a,
                       const Xbyak::Operand& m);

  // Operands.
  int number(VReg v) const { return allocation_.reg[v]; }
  static Xbyak::Zmm vec(int number, int64_t bytes);
  Xbyak::Zmm vec_of(VReg v, int64_t bytes) const { return vec(number(v), bytes); }
  Xbyak::Zmm dst_of(const Inst& inst) const;
  Xbyak::Opmask mask_of(VReg v) const { return Xbyak::Opmask(number(v)); }
  Xbyak::Reg64 r64(VReg v) const { return Xbyak::Reg64(number(v)); }
  Xbyak::Reg32 r32(VReg v) const { return Xbyak::Reg32(number(v)); }
  Xbyak::Reg sized(VReg v, int64_t bytes) const {
    return bytes == 8 ? Xbyak::Reg(r64(v)) : Xbyak::Reg(r32(v));
  }
  Xbyak::Reg8 r8(VReg v) const;
  Xbyak::Address memory(const Mem& mem, int bits = 0);
  Xbyak::Address vector_memory(const Inst& inst);  // of a gather or scatter
  static bool has_memory(const Inst& inst) { return inst.mem.kind != MemKind::None; }

  // encode_int.cpp
  bool encode_int(const Inst& inst);
  bool encode_control(const Inst& inst);
  void int_load(const Inst& inst);
  void int_store(const Inst& inst);
  void int_alu(const Inst& inst);
  void int_shift(const Inst& inst);
  void int_select(const Inst& inst);
  void int_extend(const Inst& inst);
  void int_move_imm(const Inst& inst);
  void divide(const Inst& inst);
  void divide_signed(const Inst& inst);
  void compare(const Inst& inst);
  void set_condition(Cond cond, VReg dst);
  void move_if(Cond cond, int dst, int src);
  void jump_if(Cond cond, const Xbyak::Label& label);
  void move_int(int dst, int src);

  // encode_vector.cpp
  bool encode_vector(const Inst& inst);
  bool encode_mask(const Inst& inst);
  void vector_move(const Inst& inst);
  void vector_load(const Inst& inst);
  void vector_store(const Inst& inst);
  void bypassing_store(const Inst& inst);
  void emit_cold_stores();
  void load_pool(const Inst& inst);
  void masked_memory_avx2(const Inst& inst);
  void extract_insert(const Inst& inst);
  void store_lane(const Inst& inst);
  void lane_to_int(const Inst& inst);
  void int_to_lane(const Inst& inst);
  void broadcast_int(const Inst& inst);
  void blend(const Inst& inst);
  void fma(const Inst& inst);
  void dot(const Inst& inst);
  bool encode_tile(const Inst& inst);
  void gather(const Inst& inst);
  void convert_scalar(const Inst& inst);

  struct ColdCheck {
    Xbyak::Label enter, back;
    int status, position;
    int64_t check;
  };

  struct ColdPoll {
    Xbyak::Label enter, back;
    uint32_t leave;
    int poll;
  };

  struct ColdStore {
    Xbyak::Label enter, back;
    int address, value;
    int64_t bytes;
  };

  MachineProgram& program_;
  const Allocation& allocation_;
  Xbyak::CodeGenerator c_;
  std::vector<Xbyak::Label> labels_;
  Xbyak::Label pool_label_;
  std::vector<uint8_t> in_pool_;
  int64_t pool_size_ = 0;
  std::vector<int32_t> slot_offset_;
  int64_t frame_ = 0;
  bool aligned_frame_ = false;
  std::vector<ColdCheck> cold_;
  std::vector<ColdPoll> cold_polls_;
  std::vector<ColdStore> cold_stores_;
};

}  // namespace tiny::x86
