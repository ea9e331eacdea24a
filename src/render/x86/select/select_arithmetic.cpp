// Arithmetic on values, by the linear op.
#include <bit>
#include <cmath>
#include <utility>

#include "ir/dot.h"
#include "render/x86/select/arithmetic.h"
#include "render/x86/select/floats.h"
#include "render/x86/select/ops.h"
#include "render/x86/select/values.h"

namespace tiny::x86 {

namespace {

// Constants, and numbers that were integers, are never NaN.
bool never_nan(const Values& v, LinearId id) {
  const LinearOp* o = &v.op(id);
  if (o->op == Op::Broadcast) o = &v.op(o->src[0]);
  if (o->op == Op::Cast) return !v.source(*o, 0).dtype.is_float();
  return o->op == Op::Const &&
         !std::isnan(double_of(o->dtype.element(), static_cast<uint64_t>(o->imm)));
}

// Max and Min need one instruction if the second operand is not NaN, or if the first is a constant
// that is neither NaN nor a zero.
bool select_max_of_constant(Values& v, LinearId id) {
  Emitter& e = v.emitter();
  const LinearOp& o = v.op(id);
  if (!computes(o.dtype)) return false;
  const Opcode opcode = float_extreme_opcode(o.op, o.dtype);
  if (never_nan(v, o.src[1])) {
    const VReg b = v.use(o.src[1]);
    v.set(id, e.rrm(opcode, width_of(o.dtype), b, v.use_vector_operand(o.src[0]), v.target_of(id)));
    return true;
  }
  if (!v.is_const(o.src[0]) || !never_nan(v, o.src[0]) ||
      (v.op(o.src[0]).imm << (o.dtype.bytes() == 4 ? 33 : 1)) == 0)
    return false;
  const VReg a = v.use(o.src[0]);
  v.set(id, e.rrm(opcode, width_of(o.dtype), a, v.use_vector_operand(o.src[1]), v.target_of(id)));
  return true;
}

bool select_shift_by_constant(Values& v, LinearId id) {
  Emitter& e = v.emitter();
  const LinearOp& o = v.op(id);
  const LinearOp* by = &v.source(o, 1);
  if (by->op == Op::Broadcast) by = &v.source(*by, 0);
  const DType d = o.dtype;
  if (by->op != Op::Const || d.bytes() < 4) return false;
  int64_t count = int_of(d.element(), static_cast<uint64_t>(by->imm));
  const bool keeps_sign = o.op == Op::Shr && d.is_signed();
  if (keeps_sign && d.bytes() == 8 && !e.avx512()) return false;
  if (count < 0 || count >= d.bits()) {
    if (!keeps_sign) {
      v.set(id, e.lanes_const(0, 4, width_of(d)));
      return true;
    }
    count = d.bits() - 1;
  }
  const bool wide = d.bytes() == 8;
  Opcode opcode = wide ? Opcode::vpsllq : Opcode::vpslld;
  if (o.op == Op::Shr) opcode = wide ? Opcode::vpsrlq : Opcode::vpsrld;
  if (keeps_sign) opcode = wide ? Opcode::vpsraq : Opcode::vpsrad;
  v.set(id, e.rri(opcode, width_of(d), v.use(o.src[0]), count));
  return true;
}

}  // namespace

void select_binary(Values& v, LinearId id) {
  Emitter& e = v.emitter();
  const LinearOp& o = v.op(id);
  const DType d = o.dtype;
  if (is_mask(d)) return select_mask_logic(v, id);
  if ((o.op == Op::Max || o.op == Op::Min) && d.is_float() && select_max_of_constant(v, id)) return;
  const bool shifts = o.op == Op::Shl || o.op == Op::Shr;
  if (shifts && d.lanes > 1 && select_shift_by_constant(v, id)) return;
  LinearId first = o.src[0], second = o.src[1];
  const bool orderless = o.op == Op::Add || o.op == Op::Mul || o.op == Op::And || o.op == Op::Or ||
                         o.op == Op::Xor || (d.is_int() && (o.op == Op::Max || o.op == Op::Min));
  if (orderless && (v.is_const(first) || v.is_deferred(first)) && !v.is_const(second) &&
      !v.is_deferred(second))
    std::swap(first, second);
  const VReg a = v.use(first);
  const Operand b = v.use_operand(second);
  const VReg reg = binary(e, o.op, d, a, b, v.target_of(id));
  if (reg == kNoReg) return scalarise(v, id);
  v.define(id, reg, true);
}

void select_fma(Values& v, LinearId id) {
  Emitter& e = v.emitter();
  const LinearOp& o = v.op(id);
  const DType d = o.dtype;
  if (!computes(d)) e.unsupported("floats of 16 bits are computed as float32");
  VReg src[3] = {kNoReg, kNoReg, kNoReg};
  // One operand may be memory: a factor if there is one pending, else the addend.
  size_t memory = 3;
  for (size_t s : {size_t{1}, size_t{0}, size_t{2}})
    if (memory == 3 && v.is_deferred(o.src[s])) memory = s;
  Operand from_memory(kNoReg);
  for (size_t s = 0; s < 3; ++s)
    if (s != memory) src[s] = v.use(o.src[s]);
  if (memory != 3) {
    from_memory = v.use_vector_operand(o.src[memory]);
    src[memory] = from_memory.reg;
  }
  const VReg target = v.target_of(id);
  const VReg dst = e.or_vec(target, width_of(d));
  Inst& i = e.emit(d.lanes == 1 ? Opcode::FmaScalar : Opcode::Fma, width_of(d), dst, src[0], src[1],
                   src[2]);
  i.width2 = static_cast<uint8_t>(d.bytes());
  if (memory != 3 && from_memory.reg == kNoReg) i.mem = from_memory.mem;
  v.set(id, dst);
}

// The sum is overwritten; one lane is computed in a vector register.
void select_dot(Values& v, LinearId id) {
  Emitter& e = v.emitter();
  const LinearOp& o = v.op(id);
  const auto kind = static_cast<DotKind>(o.aux);
  if (e.avx512() ? kind == DotKind::U8U8 || kind == DotKind::S8S8 : kind == DotKind::Bf16)
    e.unsupported("has no instruction");
  const int64_t width = width_of(o.dtype);
  const auto as_vector = [&](LinearId s) {
    const VReg from = v.use(s);
    if (!in_int(v.op(s).dtype)) return from;
    const VReg low = e.vec_reg(16);
    e.emit(Opcode::VFromInt, 16, low, from).width2 = 4;
    return low;
  };
  const VReg a = as_vector(o.src[0]);
  const Operand b =
      o.dtype.lanes == 1 ? Operand(as_vector(o.src[1])) : v.use_vector_operand(o.src[1]);
  VReg dst = v.target_of(id);
  const VReg sum = as_vector(o.src[2]);
  if (dst != sum || dst == kNoReg) dst = e.move(RegClass::Vec, width, sum, dst);
  Inst& i = e.emit(Opcode::Dot, width, dst, a);
  put(i, 1, b);
  i.width2 = static_cast<uint8_t>(kind);
  if (!in_int(o.dtype)) return v.set(id, dst);
  const VReg low = e.int_reg();
  e.emit(Opcode::VToInt, 16, low, dst).width2 = 4;
  v.set(id, low);
}

}  // namespace tiny::x86
