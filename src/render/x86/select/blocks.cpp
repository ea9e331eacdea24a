#include "render/x86/select/blocks.h"

#include "render/x86/select/integers.h"

namespace tiny::x86 {

void Blocks::open(const Block& block) {
  blocks_.push_back(block);
  addresses_.open_block();
  held_.emplace_back();
}

void Blocks::close() {
  blocks_.pop_back();
  addresses_.close_block();
  held_.pop_back();
}

// Behind a loop its accumulators have registers of other names: mostly the same ones, but where
// registers run out there, these go to the stack and not those that the loop adds to.
void Blocks::rename_held(LinearId end) {
  for (LinearId id : held_.back()) {
    if (v_.facts(id).user <= end) continue;
    const DType d = v_.op(id).dtype;
    v_.set(id, e_.move(RegClass::Vec, width_of(d), v_.made(id)));
  }
}

// Where a loop ends: a constant, or a register that keeps its value while the loop runs.
void Blocks::find_end(LinearId id, Block& block) {
  block.end = v_.use_operand(id);
  if (block.end.is_imm) return;
  VReg end = block.end.reg != kNoReg ? block.end.reg : v_.use(id);
  if (v_.op(id).op == Op::Accumulator) end = e_.move(RegClass::Int, 8, end);
  block.end = end;
}

void Blocks::select_loop(LinearId id) {
  const LinearOp& o = v_.op(id);
  Block block;
  block.top = e_.new_label();
  block.exit = e_.new_label();
  block.index = e_.int_reg();
  const bool constant_begin = v_.is_const(o.src[0]);
  if (constant_begin)
    e_.emit(Opcode::IMoveImm, 8, block.index).imm = v_.const_value(o.src[0]);
  else
    e_.emit(Opcode::IMove, 8, block.index, v_.use(o.src[0]));
  find_end(o.src[1], block);
  const bool runs = constant_begin && v_.is_const(o.src[1]) &&
                    v_.const_value(o.src[0]) < v_.const_value(o.src[1]);
  if (!runs) {
    Inst& jump = e_.emit(Opcode::JumpCompare, 8, kNoReg, block.index);
    put(jump, 1, block.end);
    jump.cond = Cond::GE;
    jump.label = block.exit;
  }
  block.outer = e_.open_loop();
  e_.emit(Opcode::LoopTop, 0).label = block.top;
  v_.set(id, block.index);
  open(block);
}

void Blocks::select_end_loop(LinearId id, int64_t steps) {
  const Block block = blocks_.back();
  const int64_t step = steps * v_.op(v_.op(id).src[0]).imm;
  const Operand by = fits32(step) ? Operand::immediate(step) : Operand(e_.int_const(step));
  put(e_.emit(Opcode::IAdd, 8, block.index, block.index), 1, by);
  Inst& back = e_.emit(Opcode::LoopBack, 8, kNoReg, block.index);
  put(back, 1, block.end);
  back.cond = Cond::L;
  back.label = block.top;
  e_.emit(Opcode::Label, 0).label = block.exit;
  e_.close_loop(block.outer);
  close();
  rename_held(id);
}

void Blocks::select_if(LinearId id) {
  const LinearId condition_id = v_.op(id).src[0];
  Block block;
  block.exit = e_.new_label();
  const LinearOp& test = v_.op(condition_id);
  if (v_.is_deferred(condition_id) && test.op != Op::Load) {
    const DType d = v_.source(test, 0).dtype;
    const VReg a = v_.use(test.src[0]);
    const Operand b = v_.use_operand(test.src[1]);
    Inst& jump = e_.emit(Opcode::JumpCompare, int_width(d), kNoReg, a);
    put(jump, 1, b);
    jump.cond = static_cast<Cond>(static_cast<uint8_t>(condition(test.op, d)) ^ 1);
    jump.label = block.exit;
  } else {
    e_.emit(Opcode::JumpIfZero, 4, kNoReg, v_.use(condition_id)).label = block.exit;
  }
  open(block);
}

void Blocks::select_end_if() {
  e_.emit(Opcode::Label, 0).label = blocks_.back().exit;
  close();
}

}  // namespace tiny::x86
