#include "render/x86/select/addresses.h"

#include "render/x86/select/index_terms.h"
#include "render/x86/select/integers.h"

namespace tiny::x86 {

void Addresses::select(LinearId id) {
  Emitter& e = v_.emitter();
  const LinearOp& o = v_.op(id);
  int64_t constant = 0;
  const LinearId rest = peel(v_, o.src[1], constant);
  const VReg base = v_.use(o.src[0]);
  const int64_t disp = wrapping_add_product(v_.displacement(o.src[0]), constant, o.imm);
  const bool base_changes = v_.source(o, 0).op == Op::Accumulator;
  if (rest == kNoIndex)
    return v_.set_address(id, base_changes ? e.move(RegClass::Int, 8, base) : base, disp);
  const Key key{o.src[0], rest, o.imm};
  const bool shared = !base_changes && v_.op(rest).op != Op::Accumulator;
  const auto known = shared ? formed_.find(key) : formed_.end();
  if (known != formed_.end()) return v_.set_address(id, known->second, disp);
  const VReg reg = form(rest, base, o.imm);
  if (shared) {
    formed_.emplace(key, reg);
    formed_at_.emplace_back(depth_, key);
  }
  v_.set_address(id, reg, disp);
}

VReg Addresses::form(LinearId index, VReg base, int64_t unit) {
  Emitter& e = v_.emitter();
  const VReg reg = e.int_reg();
  Mem m;
  m.kind = MemKind::Address;
  m.base = base;
  if (is_scale(unit)) {
    m.index = v_.use(index);
    m.scale = static_cast<uint8_t>(unit);
  } else {
    const Operand by = fits32(unit) ? Operand::immediate(unit) : Operand(e.int_const(unit));
    m.index = int_plain(e, Opcode::IMul, 8, v_.use(index), by);
  }
  e.emit(Opcode::ILea, 8, reg).mem = m;
  return reg;
}

void Addresses::close_block() {
  --depth_;
  while (!formed_at_.empty() && formed_at_.back().first > depth_) {
    formed_.erase(formed_at_.back().second);
    formed_at_.pop_back();
  }
}

}  // namespace tiny::x86
