// Casts and bitcasts, by the linear op.
#include "render/x86/select/comparisons.h"
#include "render/x86/select/conversions.h"
#include "render/x86/select/integers.h"
#include "render/x86/select/lanes.h"
#include "render/x86/select/masks.h"
#include "render/x86/select/ops.h"
#include "render/x86/select/values.h"

namespace tiny::x86 {

void select_cast(Values& v, LinearId id) {
  Emitter& e = v.emitter();
  const LinearOp& o = v.op(id);
  const DType from = v.source(o, 0).dtype, to = o.dtype;
  if (is_mask(from) || is_mask(to)) {
    if (is_mask(from) && is_mask(to)) return select_mask_logic(v, id);
    if (is_mask(from)) {
      const VReg one = e.lanes_const(bits_of(to.element(), 1.0), to.bytes(), width_of(to));
      return v.set(id, keep(e, to, v.mask_in(o.src[0], to.bytes()), one));
    }
    VReg a = v.use(o.src[0]);
    DType compared = from;
    if (half_float(from)) {  // all bits but the sign
      compared = kUInt16.with_lanes(from.lanes);
      a = e.rrm(Opcode::vandps, width_of(from), a, e.lanes_const(0x7FFF, 2, width_of(from)));
    }
    const VReg zero = e.lanes_const(0, 4, width_of(compared));
    return v.set(id, compare(e, Op::NotEqual, compared, a, zero),
                 e.avx512() ? 0 : compared.bytes());
  }
  const VReg a = v.use(o.src[0]);
  const VReg reg = from == to      ? a
                   : to.lanes == 1 ? cast_scalar(e, from, to, a)
                                   : cast_vector(e, from, to, a);
  if (reg == kNoReg) return scalarise(v, id);
  v.define(id, reg, true);
}

void select_bitcast(Values& v, LinearId id) {
  Emitter& e = v.emitter();
  const LinearOp& o = v.op(id);
  const DType from = v.source(o, 0).dtype, to = o.dtype;
  if (from.is_bool() || to.is_bool()) return select_cast(v, id);
  VReg a = v.use(o.src[0]);
  const bool to_int = in_int(to), from_int = in_int(from);
  if (from_int && to_int) {
    a = canonical(e, to, a);
  } else if (from_int) {
    const VReg dst = e.vec_reg(16);
    e.emit(Opcode::VFromInt, 16, dst, a).width2 = to.bytes() == 8 ? 8 : 4;
    a = dst;
  } else if (to_int) {
    a = lane_bits(e, a, 16, to.bytes(), 0);
    if (to.is_signed()) a = canonical(e, to, a);
  }
  v.define(id, a, true);
}

}  // namespace tiny::x86
