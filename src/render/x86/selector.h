// Instruction selection: one linear op after the other becomes machine instructions.
//
// Where a value lives.  One lane: integers, bools (0 or 1) and addresses in an integer register, 8-
// and 16-bit ones extended to 32 bits by their sign; bits above 32 of a 32-bit value are undefined.
// Floats of one lane, and all vectors, in a vector register; lanes beyond the value's are
// undefined. A vector of bools is a mask register (AVX-512; bits beyond its lanes undefined) or a
// vector of lanes 0 or -1 (AVX2; `Value::lane` bytes each, converted where a user's lanes differ).
//
// A load with one user in the same block and no store between is emitted with that user, as its
// memory operand where the instruction has one.  Constants are made before the loop that uses them.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "ir/dot.h"
#include "ir/target.h"
#include "render/x86/machine.h"

namespace tiny::x86 {

// The machine program of `program`; throws Error{Unsupported} that names the op.
MachineProgram select(const LinearProgram& program, bool avx512);

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

class Selector {
 public:
  Selector(const LinearProgram& program, bool avx512);
  MachineProgram run();

 private:
  struct Value {
    VReg reg = kNoReg;
    uint8_t lane = 0;  // AVX2 masks: bytes of a lane
    bool deferred = false;
    int64_t disp = 0;  // addresses: the value is reg + disp
  };
  // What is known of each linear op before selection.
  struct Facts {
    uint32_t uses = 0;
    uint32_t epoch = 0;           // changes at every store, set and block boundary
    uint32_t block = 0;           // changes at every block boundary
    LinearId user = 0;            // the last one
    LinearId target = kNoTarget;  // the accumulator that the value is computed in
    uint8_t lane = 0;             // AVX2 masks: the lane that users want
  };
  static constexpr LinearId kNoTarget = UINT32_MAX;

  // select.cpp: analysis and the walk.
  void analyse();
  void find_targets();
  void want_lanes();
  void select_op(LinearId id);
  void select_elementwise(LinearId id);
  void splice_preheaders();
  void drop_dead();
  [[noreturn]] void unsupported(const char* why) const;
  const LinearOp& op(LinearId id) const { return program_.ops[id]; }
  const LinearOp& source(const LinearOp& o, size_t i) const { return program_.ops[o.src[i]]; }
  bool is_const(LinearId id) const { return op(id).op == Op::Const; }
  int64_t const_value(LinearId id) const;
  VReg target_of(LinearId id);

  // Emitting.
  Inst& emit(Opcode opcode, int64_t width, VReg dst = kNoReg, VReg a = kNoReg, VReg b = kNoReg,
             VReg c = kNoReg);
  VReg int_reg() { return out_.add_reg(RegClass::Int, 8); }
  VReg vec_reg(int64_t width) { return out_.add_reg(RegClass::Vec, width); }
  VReg mask_reg() { return out_.add_reg(RegClass::Mask, 8); }
  VReg or_vec(VReg dst, int64_t width) { return dst != kNoReg ? dst : vec_reg(width); }
  VReg or_int(VReg dst) { return dst != kNoReg ? dst : int_reg(); }
  VReg rr(Opcode opcode, int64_t width, VReg a, int64_t width2 = 0, VReg dst = kNoReg);
  VReg rri(Opcode opcode, int64_t width, VReg a, int64_t imm, VReg dst = kNoReg);
  VReg rrm(Opcode opcode, int64_t width, VReg a, const Operand& b, VReg dst = kNoReg);
  VReg rrmi(Opcode opcode, int64_t width, VReg a, const Operand& b, int64_t imm, VReg dst = kNoReg);
  VReg krm(Opcode opcode, int64_t width, VReg a, const Operand& b, int64_t imm);
  static void put(Inst& inst, size_t at, const Operand& b);
  VReg move(RegClass cls, int64_t width, VReg from, VReg dst = kNoReg);

  // Values.
  VReg use(LinearId id);
  Operand use_operand(LinearId id);  // an immediate or memory where that is possible
  Operand use_vector_operand(LinearId id);
  void set(LinearId id, VReg reg, int64_t lane = 0);
  void define(LinearId id, VReg reg, bool may_alias);
  static bool in_int(DType d) { return d.lanes == 1 && !d.is_float(); }
  bool is_mask(DType d) const { return d.lanes > 1 && d.is_bool(); }
  static int64_t width_of(DType d) { return width_for(d.lanes * d.bytes()); }
  static int64_t width_for(int64_t bytes) { return bytes <= 16 ? 16 : bytes; }
  static int64_t int_width(DType d) { return d.bytes() == 8 ? 8 : 4; }
  RegClass class_of(DType d) const;

  // Constants.
  uint32_t pool_lane(uint64_t bits, int64_t lane);
  uint32_t pool_bytes(std::vector<std::byte> bytes);
  VReg pool_reg(uint32_t pool, int64_t width);
  VReg lanes_const(uint64_t bits, int64_t lane, int64_t width) {
    return pool_reg(pool_lane(bits, lane), width);
  }
  VReg int_const(int64_t value);
  VReg vector_const(DType dtype, uint64_t bits);

  // select_control.cpp
  void select_loop(LinearId id);
  void select_end_loop(LinearId id);
  void select_if(LinearId id);
  void select_end_if();
  void forget_addresses();
  void select_accumulator(LinearId id);
  void move_value(LinearId id, VReg to, DType dtype, int64_t lane);
  void select_set(LinearId id);
  void select_check(LinearId id);
  void select_poll();
  VReg args_field(int64_t offset);
  VReg entry_pointer(VReg& cache, int64_t offset);
  void select_entry_value(LinearId id);

  // select_memory.cpp
  static constexpr LinearId kNoIndex = UINT32_MAX;  // an index that was all constant
  Mem address(LinearId base, LinearId index, int64_t size, int64_t imm);
  LinearId peel(LinearId index, int64_t& constant) const;
  void select_address(LinearId id);
  void select_load(LinearId id);
  void emit_load(LinearId id);
  VReg load_plain(DType dtype, const Mem& mem, VReg dst = kNoReg);
  VReg load_masked(DType dtype, const Mem& mem, VReg mask);
  VReg load_lanes(const LinearOp& o, const Mem& mem, VReg bits);
  bool loads_by_permuting(DType dtype, int32_t stride, bool masked) const;
  VReg spread_mask(VReg bits, int64_t first, uint64_t places, int64_t n, int64_t size);
  VReg load_strided(const LinearOp& o, Mem mem, VReg mask);
  VReg load_every_second_avx2(DType dtype, const Mem& mem);
  VReg load_gather(const LinearOp& o, const Mem& mem, VReg mask);
  void select_store(LinearId id);
  void select_prefetch(LinearId id);
  void store_plain(DType dtype, const Mem& mem, VReg value);
  void store_masked(DType dtype, const Mem& mem, VReg value, VReg mask);
  void store_lanes(const LinearOp& o, DType dtype, const Mem& mem, VReg value, VReg bits);
  void store_scatter(const LinearOp& o, DType dtype, const Mem& mem, VReg value, VReg mask);
  Mem lane_address(const LinearOp& o, DType dtype, const Mem& mem, int64_t lane);
  Mem offset_by(const Mem& mem, int64_t bytes);
  VReg limit_mask(VReg mask, int64_t lanes, int64_t lane);
  void skip_unless(VReg bits, int64_t lane, uint32_t label);

  // select_transpose.cpp
  bool is_stored_across(const LinearOp& o) const;
  std::pair<Op, int64_t> memory_of(LinearId address) const;
  void find_squares();
  uint64_t stored_lanes(const LinearOp& o) const;
  bool meet(const LinearOp& a, const LinearOp& b) const;
  void note_squares(std::vector<LinearId> stores);
  bool are_woven(const LinearOp& row, size_t count) const;
  void store_across(LinearId id);
  void store_woven(const LinearOp& first, const std::vector<VReg>& rows, const Mem& mem);
  void store_byte_columns(DType dtype, std::vector<VReg> rows, uint64_t lanes,
                          const std::function<Mem(int64_t)>& place);
  void store_bytes(const Mem& mem, VReg value, int64_t count);
  std::vector<VReg> transposed(int64_t width, const std::vector<VReg>& rows);

  // select_integer.cpp: one lane.
  VReg int_binary(Op op, DType dtype, VReg a, const Operand& b, VReg dst = kNoReg);
  VReg int_divide(Op op, DType dtype, VReg a, const Operand& b, VReg dst);
  VReg int_shift(Op op, DType dtype, VReg a, const Operand& b);
  VReg int_unary(Op op, DType dtype, VReg a);
  VReg int_compare(Op op, DType dtype, VReg a, const Operand& b);
  VReg int_plain(Opcode opcode, int64_t width, VReg a, const Operand& b, VReg dst = kNoReg);
  VReg canonical(DType dtype, VReg value, VReg dst = kNoReg);
  VReg as_reg(DType dtype, const Operand& b);
  VReg int_select(VReg condition, VReg a, VReg b, VReg dst = kNoReg);
  static Cond condition(Op op, DType dtype);

  // select_vector.cpp
  VReg binary(Op op, DType dtype, VReg a, const Operand& b, VReg dst = kNoReg);
  VReg unary(Op op, DType dtype, VReg a);
  VReg float_binary(Op op, DType dtype, VReg a, const Operand& b, VReg dst);
  VReg float_unary(Op op, DType dtype, VReg a);
  VReg float_extreme(Op op, DType dtype, VReg a, VReg b, VReg dst);
  VReg vector_int_binary(Op op, DType dtype, VReg a, const Operand& b, VReg dst);
  VReg vector_int_unary(Op op, DType dtype, VReg a);
  VReg vector_int_extreme(Op op, DType dtype, VReg a, VReg b);
  VReg mul_int64(int64_t width, VReg a, VReg b);
  void select_binary(LinearId id);
  void select_fma(LinearId id);
  void select_dot(LinearId id);
  bool select_max_of_constant(LinearId id);
  bool select_shift_by_constant(LinearId id);
  bool never_nan(LinearId id) const;

  // select_mask.cpp
  VReg mask_in(LinearId id, int64_t lane);  // the mask in lanes of `lane` bytes
  std::optional<uint64_t> constant_mask(LinearId id) const;
  VReg make_constant_mask(uint64_t bits, int64_t lanes, int64_t lane);
  VReg convert_mask(VReg mask, int64_t lanes, int64_t from, int64_t to);
  VReg compare(Op op, DType dtype, VReg a, const Operand& b);
  VReg compare_float_avx2(Op op, DType dtype, VReg a, const Operand& b);
  VReg compare_int_avx2(Op op, DType dtype, VReg a, VReg b);
  VReg mask_binary(Op op, int64_t width, VReg a, VReg b, VReg dst = kNoReg);
  VReg mask_not(int64_t width, VReg a);
  VReg pick(DType dtype, VReg mask, VReg yes, VReg no);    // lanes of dtype, mask in its lanes
  VReg scalar_mask(VReg condition);                        // of the low lane, from a bool
  VReg keep(DType dtype, VReg mask, VReg value);           // value where mask, else 0
  VReg mask_bits(VReg mask, int64_t lanes, int64_t lane);  // in an integer register
  VReg mask_from_bytes(VReg bytes, int64_t lanes, int64_t lane);
  VReg mask_to_bytes(VReg mask, int64_t lanes, int64_t lane);
  VReg mask_from_bits(VReg bits, int64_t lanes, int64_t lane);
  int64_t mask_lane(LinearId id) const;
  int64_t mask_width(int64_t lanes, int64_t lane) const { return width_for(lanes * lane); }
  void select_compare(LinearId id);
  void select_where(LinearId id);
  void select_mask_logic(LinearId id);
  void select_lane_range(LinearId id);

  // select_cast.cpp
  void select_cast(LinearId id);
  void select_bitcast(LinearId id);
  VReg cast_scalar(DType from, DType to, VReg a);
  VReg int_to_float_scalar(DType from, DType to, VReg a);
  VReg float_to_int_scalar(DType from, DType to, VReg a);
  VReg float_to_uint64_scalar(DType from, VReg a);
  VReg cast_float(DType from, DType to, VReg a);
  VReg float_to_bfloat(int64_t lanes, VReg a);
  VReg cast_vector(DType from, DType to, VReg a);
  VReg int_to_float(DType from, DType to, VReg a);
  VReg float_to_int(DType from, DType to, VReg a);
  VReg resize_ints(DType from, DType to, VReg a);
  VReg narrow_avx2(int64_t lanes, int64_t from, int64_t to, VReg a);

  // select_lanes.cpp
  void select_broadcast(LinearId id);
  void select_ramp(LinearId id);
  void select_fold(LinearId id);
  VReg broadcast(DType dtype, VReg scalar);
  VReg spread(int64_t size, int64_t width, VReg low);
  VReg iota(DType dtype, uint64_t start, int64_t step);
  VReg fold(Op op, DType dtype, VReg a);
  VReg upper_half(DType dtype, VReg a);
  VReg fold_by_lanes(Op op, DType dtype, VReg a);
  VReg fold_mask(Op op, int64_t lanes, VReg mask, int64_t lane);
  VReg lane_bits(VReg vector, int64_t width, int64_t size, int64_t lane);
  VReg piece_of(VReg vector, int64_t width, int64_t piece);
  VReg extract(DType dtype, VReg vector, int64_t lane);
  VReg assemble(DType dtype, const std::vector<VReg>& lanes);
  VReg join(int64_t width, const std::vector<VReg>& pieces);
  void scalarise(LinearId id);

  const LinearProgram& program_;
  const bool avx512_;
  MachineProgram out_;
  std::vector<Value> values_;
  std::vector<Facts> facts_;
  // Stores of rows of a square that is stored across; with the last one, all, by place.
  std::unordered_map<LinearId, std::vector<LinearId>> squares_;
  LinearId at_ = 0;
  bool bypasses_ = false;  // some store passes the caches
  VReg args_ = kNoReg;
  VReg buffers_ = kNoReg;
  VReg variables_ = kNoReg;
  VReg scratch_ = kNoReg;
  VReg poll_ = kNoReg;
  uint32_t left_ = 0;  // the label where polls leave to, if there are any
  struct Block {
    uint32_t loop = 0;  // the loop around it
    uint32_t top = 0;   // labels
    uint32_t exit = 0;
    VReg index = kNoReg;
    VReg end = kNoReg;
    bool guarded = false;
    bool end_is_const = false;
    int64_t end_value = 0;
  };
  std::vector<Block> blocks_;
  std::vector<std::vector<Inst>> preheaders_;  // 0: the entry
  uint32_t loop_ = 0;
  std::map<std::pair<uint64_t, int64_t>, uint32_t> lane_pool_;
  std::map<std::string, uint32_t> byte_pool_;
  std::unordered_map<uint64_t, VReg> pool_regs_;
  std::map<std::pair<uint32_t, uint64_t>, VReg> constant_masks_;  // by loop and bits
  // Address(base, x + c, unit) is base + x*unit, made once for a block and the ones inside it, plus
  // c*unit.
  using AddressKey = std::tuple<LinearId, LinearId, int64_t>;
  std::map<AddressKey, VReg> formed_;
  std::vector<std::pair<size_t, AddressKey>> formed_at_;  // the depth of the block that made it
};

}  // namespace tiny::x86
