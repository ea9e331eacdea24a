// Entry values, loops, ifs, accumulators and checks.
#include "base/kernel_abi.h"
#include "render/x86/selector.h"

namespace tiny::x86 {

namespace {

Mem at_offset(VReg base, int64_t offset) {
  Mem m;
  m.kind = MemKind::Address;
  m.base = base;
  m.disp = static_cast<int32_t>(offset);
  return m;
}

}  // namespace

VReg Selector::args_field(int64_t offset) {
  const VReg reg = int_reg();
  emit(Opcode::ILoad, 8, reg).mem = at_offset(args_, offset);
  return reg;
}

// A pointer of KernelArgs, loaded once at the entry.
VReg Selector::entry_pointer(VReg& cache, int64_t offset) {
  if (cache == kNoReg) {
    cache = int_reg();
    Inst i;
    i.op = Opcode::ILoad;
    i.width = i.width2 = 8;
    i.dst = cache;
    i.mem = at_offset(args_, offset);
    i.origin = at_;
    preheaders_[0].push_back(i);
  }
  return cache;
}

void Selector::select_entry_value(LinearId id) {
  const LinearOp& o = op(id);
  if (o.op == Op::Scratch) {
    set(id, entry_pointer(scratch_, offsetof(KernelArgs, scratch)));
    values_[id].disp = o.imm;
    return;
  }
  if (o.op == Op::LaunchArg) {
    constexpr int64_t kFields[] = {offsetof(KernelArgs, begin), offsetof(KernelArgs, end),
                                   offsetof(KernelArgs, worker)};
    return set(id, args_field(kFields[o.imm]));
  }
  const VReg table = o.op == Op::Param ? entry_pointer(buffers_, offsetof(KernelArgs, buffers))
                                       : entry_pointer(variables_, offsetof(KernelArgs, variables));
  if (o.imm > (INT32_MAX >> 3)) unsupported("the slot is out of range");
  const VReg reg = int_reg();
  emit(Opcode::ILoad, 8, reg).mem = at_offset(table, 8 * o.imm);
  set(id, reg);
}

void Selector::select_loop(LinearId id) {
  const LinearOp& o = op(id);
  Block block;
  block.loop = loop_;
  block.top = out_.labels++;
  block.exit = out_.labels++;
  block.index = int_reg();
  const bool constant_begin = is_const(o.src[0]);
  if (constant_begin)
    emit(Opcode::IMoveImm, 8, block.index).imm = const_value(o.src[0]);
  else
    emit(Opcode::IMove, 8, block.index, use(o.src[0]));
  const Operand end = use_operand(o.src[1]);
  block.end_is_const = end.is_imm;
  block.end_value = end.imm;
  if (!end.is_imm) {
    block.end = end.reg != kNoReg ? end.reg : use(o.src[1]);
    if (source(o, 1).op == Op::Accumulator) block.end = move(RegClass::Int, 8, block.end);
  }
  block.guarded =
      !(constant_begin && is_const(o.src[1]) && const_value(o.src[0]) < const_value(o.src[1]));
  if (block.guarded) {
    Inst& jump = emit(Opcode::JumpCompare, 8, kNoReg, block.index);
    put(jump, 1, block.end_is_const ? Operand::immediate(block.end_value) : Operand(block.end));
    jump.cond = Cond::GE;
    jump.label = block.exit;
  }
  loop_ = static_cast<uint32_t>(preheaders_.size());
  preheaders_.emplace_back();
  emit(Opcode::Preheader, 0).imm = loop_;
  emit(Opcode::LoopTop, 0).label = block.top;
  set(id, block.index);
  blocks_.push_back(block);
}

void Selector::select_end_loop(LinearId id) {
  const Block block = blocks_.back();
  const int64_t step = op(op(id).src[0]).imm;
  const bool small = step == static_cast<int32_t>(step);
  const Operand by = small ? Operand::immediate(step) : Operand(int_const(step));
  put(emit(Opcode::IAdd, 8, block.index, block.index), 1, by);
  Inst& back = emit(Opcode::LoopBack, 8, kNoReg, block.index);
  put(back, 1, block.end_is_const ? Operand::immediate(block.end_value) : Operand(block.end));
  back.cond = Cond::L;
  back.label = block.top;
  emit(Opcode::Label, 0).label = block.exit;
  loop_ = block.loop;
  blocks_.pop_back();
  forget_addresses();
}

void Selector::forget_addresses() {
  while (!formed_at_.empty() && formed_at_.back().first > blocks_.size()) {
    formed_.erase(formed_at_.back().second);
    formed_at_.pop_back();
  }
}

void Selector::select_if(LinearId id) {
  const LinearId condition_id = op(id).src[0];
  Block block;
  block.loop = loop_;
  block.exit = out_.labels++;
  const LinearOp& test = op(condition_id);
  if (values_[condition_id].deferred && test.op != Op::Load) {
    const DType d = source(test, 0).dtype;
    const VReg a = use(test.src[0]);
    const Operand b = use_operand(test.src[1]);
    Inst& jump = emit(Opcode::JumpCompare, int_width(d), kNoReg, a);
    put(jump, 1, b);
    jump.cond = static_cast<Cond>(static_cast<uint8_t>(condition(test.op, d)) ^ 1);
    jump.label = block.exit;
  } else {
    emit(Opcode::JumpIfZero, 4, kNoReg, use(condition_id)).label = block.exit;
  }
  blocks_.push_back(block);
}

void Selector::select_end_if() {
  emit(Opcode::Label, 0).label = blocks_.back().exit;
  blocks_.pop_back();
  forget_addresses();
}

// Writes the value of `id` to the register `to`, which holds values of `dtype`.
void Selector::move_value(LinearId id, VReg to, DType dtype, int64_t lane) {
  if (is_const(id) && !is_mask(dtype)) {
    if (in_int(dtype)) {
      emit(Opcode::IMoveImm, 8, to).imm = const_value(id);
    } else {
      Inst& i = emit(Opcode::VLoadPool, width_of(dtype), to);
      i.mem.kind = MemKind::Pool;
      i.mem.id = pool_lane(static_cast<uint64_t>(op(id).imm), dtype.bytes());
    }
    return;
  }
  const VReg from = is_mask(dtype) ? mask_in(id, lane) : use(id);
  if (from == to) return;
  const int64_t width = in_int(dtype)    ? 8
                        : is_mask(dtype) ? mask_width(dtype.lanes, lane)
                                         : width_of(dtype);
  move(class_of(dtype), width, from, to);
}

void Selector::select_accumulator(LinearId id) {
  const DType d = op(id).dtype;
  const int64_t lane = mask_lane(id);
  const int64_t width = is_mask(d) ? mask_width(d.lanes, lane) : width_of(d);
  const VReg reg = out_.add_reg(class_of(d), class_of(d) == RegClass::Vec ? width : 8);
  move_value(op(id).src[0], reg, d, lane);
  set(id, reg, lane);
}

void Selector::select_set(LinearId id) {
  const LinearId acc = op(id).src[0];
  move_value(op(id).src[1], values_[acc].reg, op(acc).dtype, values_[acc].lane);
}

void Selector::select_poll() {
  if (poll_ == kNoReg) left_ = out_.labels++;
  const VReg poll = entry_pointer(poll_, offsetof(KernelArgs, poll));
  emit(Opcode::Poll, 8, kNoReg, poll).label = left_;
}

void Selector::select_check(LinearId id) {
  const LinearOp& o = op(id);
  const DType d = source(o, 0).dtype;
  VReg ok = kNoReg;
  if (is_mask(d)) {
    const int64_t lane = mask_lane(o.src[0]);
    ok = fold_mask(Op::And, d.lanes, mask_in(o.src[0], lane), lane);
  } else {
    ok = use(o.src[0]);
  }
  const VReg position = use(o.src[1]);
  const VReg status = args_field(offsetof(KernelArgs, status));
  emit(Opcode::CheckFailed, 8, kNoReg, ok, status, position).imm = o.aux;
}

}  // namespace tiny::x86
