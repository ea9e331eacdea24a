#include "render/x86/select/entry.h"

#include "base/kernel_abi.h"
#include "render/x86/select/masks.h"

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

Entry::Entry(Values& values) : v_(values), e_(values.emitter()), args_(e_.int_reg()) {
  e_.emit(Opcode::IArgs, 8, args_);
  e_.emit(Opcode::Preheader, 0).imm = 0;
}

void Entry::end() {
  if (poll_ != kNoReg) e_.emit(Opcode::Label, 0).label = left_;
}

VReg Entry::args_field(int64_t offset) {
  const VReg reg = e_.int_reg();
  e_.emit(Opcode::ILoad, 8, reg).mem = at_offset(args_, offset);
  return reg;
}

// A pointer of KernelArgs, loaded once at the entry.
VReg Entry::entry_pointer(VReg& cache, int64_t offset) {
  if (cache == kNoReg) {
    cache = e_.int_reg();
    Inst i;
    i.op = Opcode::ILoad;
    i.width = i.width2 = 8;
    i.dst = cache;
    i.mem = at_offset(args_, offset);
    e_.emit_at_entry(i);
  }
  return cache;
}

void Entry::select_value(LinearId id) {
  const LinearOp& o = v_.op(id);
  if (o.op == Op::Scratch) {
    const VReg scratch = entry_pointer(scratch_, offsetof(KernelArgs, scratch));
    return v_.set_address(id, scratch, o.imm);
  }
  if (o.op == Op::LaunchArg) {
    constexpr int64_t kFields[] = {offsetof(KernelArgs, begin), offsetof(KernelArgs, end),
                                   offsetof(KernelArgs, worker)};
    return v_.set(id, args_field(kFields[o.imm]));
  }
  const VReg table = o.op == Op::Param ? entry_pointer(buffers_, offsetof(KernelArgs, buffers))
                                       : entry_pointer(variables_, offsetof(KernelArgs, variables));
  if (o.imm > (INT32_MAX >> 3)) e_.unsupported("the slot is out of range");
  const VReg reg = e_.int_reg();
  e_.emit(Opcode::ILoad, 8, reg).mem = at_offset(table, 8 * o.imm);
  v_.set(id, reg);
}

void Entry::select_poll() {
  if (poll_ == kNoReg) left_ = e_.new_label();
  const VReg poll = entry_pointer(poll_, offsetof(KernelArgs, poll));
  e_.emit(Opcode::Poll, 8, kNoReg, poll).label = left_;
}

void Entry::select_check(LinearId id) {
  const LinearOp& o = v_.op(id);
  const DType d = v_.source(o, 0).dtype;
  VReg ok = kNoReg;
  if (is_mask(d)) {
    const int64_t lane = v_.mask_lane(o.src[0]);
    ok = fold_mask(e_, Op::And, d.lanes, v_.mask_in(o.src[0], lane), lane);
  } else {
    ok = v_.use(o.src[0]);
  }
  const VReg position = v_.use(o.src[1]);
  const VReg status = args_field(offsetof(KernelArgs, status));
  e_.emit(Opcode::CheckFailed, 8, kNoReg, ok, status, position).imm = o.aux;
}

}  // namespace tiny::x86
