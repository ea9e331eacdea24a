#include "render/x86/select/values.h"

#include <optional>

#include "base/error.h"
#include "render/x86/select/index_terms.h"
#include "render/x86/select/integers.h"
#include "render/x86/select/loads.h"
#include "render/x86/select/masks.h"

namespace tiny::x86 {

Values::Values(const LinearProgram& program, Emitter& emitter)
    : LinearView(program),
      e_(emitter),
      facts_(find_facts(*this, emitter.avx512())),
      values_(program.ops.size()) {
}

VReg Values::use(LinearId id) {
  if (is_const(id)) {
    const LinearOp& o = op(id);
    if (in_int(o.dtype)) return e_.int_const(const_value(id));
    return e_.vector_const(o.dtype, static_cast<uint64_t>(o.imm));
  }
  if (values_[id].deferred) load_now(id);
  if (values_[id].slot != kNoReg) {
    Inst& i = e_.emit(Opcode::VLoad, width_of(op(id).dtype), e_.vec_reg(width_of(op(id).dtype)));
    i.mem.kind = MemKind::Slot;
    i.mem.id = values_[id].slot;
    return i.dst;
  }
  invariant(values_[id].reg != kNoReg, "a linear value is made before its use");
  return values_[id].reg;
}

void Values::set(LinearId id, VReg reg, int64_t lane) {
  values_[id].reg = reg;
  values_[id].lane = static_cast<uint8_t>(lane);
}

void Values::set_address(LinearId id, VReg reg, int64_t disp) {
  values_[id].reg = reg;
  values_[id].disp = disp;
}

void Values::define(LinearId id, VReg reg, bool may_alias) {
  const LinearOp& o = op(id);
  if (may_alias && reg != target_of(id))
    for (size_t s = 0; s < o.count; ++s)
      if (source(o, s).op == Op::Accumulator && values_[o.src[s]].reg == reg) {
        reg = e_.move(e_.class_of(o.dtype), in_int(o.dtype) ? 8 : width_of(o.dtype), reg);
        break;
      }
  set(id, reg, mask_lane(id));
}

VReg Values::target_of(LinearId id) const {
  return facts_[id].target == kNoTarget ? kNoReg : values_[facts_[id].target].reg;
}

int64_t Values::mask_lane(LinearId id) const {
  return is_mask(op(id).dtype) && !e_.avx512() ? facts_[id].lane : 0;
}

VReg Values::mask_in(LinearId id, int64_t lane) {
  if (const auto bits = constant_mask(id))
    return make_constant_mask(e_, *bits, op(id).dtype.lanes, lane);
  const VReg reg = use(id);
  return e_.avx512() ? reg : convert_mask(e_, reg, op(id).dtype.lanes, values_[id].lane, lane);
}

Operand Values::use_operand(LinearId id) {
  const DType d = op(id).dtype;
  if (!in_int(d)) return use_vector_operand(id);
  if (is_const(id)) {
    int64_t value = const_value(id);
    if (int_width(d) == 4) value = static_cast<int32_t>(value);
    if (value == static_cast<int32_t>(value)) return Operand::immediate(value);
  }
  if (values_[id].deferred && d.bytes() >= 4) {
    const LinearOp& o = op(id);
    return Operand(address(o.src[0], o.src[1], d.bytes(), o.imm));
  }
  return use(id);
}

// Memory where the load is pending and fills the register, or is the one lane of a scalar op.
Operand Values::use_vector_operand(LinearId id) {
  const LinearOp& o = op(id);
  if (values_[id].deferred && o.count == 2 && !o.dtype.is_bool() && o.dtype.bytes() >= 4) {
    const int64_t bytes = o.dtype.lanes * o.dtype.bytes();
    if (o.dtype.lanes == 1 || (bytes >= 16 && o.aux == 1))
      return Operand(address(o.src[0], o.src[1], o.dtype.bytes(), o.imm));
  }
  return use(id);
}

Mem Values::address(LinearId base, LinearId index, int64_t size, int64_t imm) {
  int64_t constant = 0;
  LinearId rest = peel(*this, index, constant);
  int64_t disp = wrapping_add_product(imm, constant, size);
  Mem m;
  m.kind = MemKind::Address;
  m.base = use(base);
  disp = wrapping_add_product(disp, values_[base].disp, 1);
  if (rest != kNoIndex) {
    int64_t scale = size;
    const LinearOp& o = op(rest);
    if (o.op == Op::Mul && is_const(o.src[1]) && source(o, 0).op != Op::Accumulator &&
        is_scale(op(o.src[1]).imm) && is_scale(scale * op(o.src[1]).imm)) {
      scale *= op(o.src[1]).imm;
      rest = o.src[0];
    }
    m.index = use(rest);
    m.scale = static_cast<uint8_t>(scale);
  }
  if (!fits32(disp)) {
    m.base = int_plain(e_, Opcode::IAdd, 8, m.base, Operand(e_.int_const(disp)));
    disp = 0;
  }
  m.disp = static_cast<int32_t>(disp);
  return m;
}

LanePlaces Values::places(const LinearOp& o, DType dtype) {
  LanePlaces at{dtype, {}, o.aux};
  if (source(o, 1).dtype.lanes == 1) {
    at.mem = address(o.src[0], o.src[1], dtype.bytes(), o.imm);
    return at;
  }
  at.mem.kind = MemKind::Address;
  at.mem.base = use(o.src[0]);
  at.index = use(o.src[1]);  // here, not first in a branch of one lane
  const int64_t disp = wrapping_add_product(o.imm, values_[o.src[0]].disp, 1);
  if (!fits32(disp))
    at.mem.base = int_plain(e_, Opcode::IAdd, 8, at.mem.base, Operand(e_.int_const(disp)));
  at.mem.disp = fits32(disp) ? static_cast<int32_t>(disp) : 0;
  return at;
}

void Values::load_now(LinearId id) {
  const LinearOp& o = op(id);
  values_[id].deferred = false;
  const DType d = is_mask(o.dtype) ? kUInt8.with_lanes(o.dtype.lanes) : o.dtype;
  const LanePlaces at = places(o, d);
  const VReg mask = o.count > 2 ? mask_in(o.src[2], d.bytes()) : kNoReg;
  const auto known = o.count > 2 ? constant_mask(o.src[2]) : std::nullopt;
  const VReg reg = load(e_, at, mask, known);
  if (!is_mask(o.dtype)) return set(id, reg);
  const int64_t lane = mask_lane(id);
  set(id, mask_from_bytes(e_, reg, o.dtype.lanes, lane), lane);
}

}  // namespace tiny::x86
