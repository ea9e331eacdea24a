// Broadcasts, ramps, folds, and ops done lane by lane, by the linear op.
#include <vector>

#include "render/x86/select/arithmetic.h"
#include "render/x86/select/conversions.h"
#include "render/x86/select/lanes.h"
#include "render/x86/select/masks.h"
#include "render/x86/select/ops.h"
#include "render/x86/select/values.h"
#include "render/x86/select/vector_integers.h"

namespace tiny::x86 {

void select_broadcast(Values& v, LinearId id) {
  Emitter& e = v.emitter();
  const LinearOp& o = v.op(id);
  const LinearOp& from = v.source(o, 0);
  const int64_t width = width_of(o.dtype), size = o.dtype.bytes();
  if (is_mask(o.dtype) && v.is_const(o.src[0])) return;  // made where it is used
  if (v.is_const(o.src[0]))
    return v.set(id, e.vector_const(o.dtype, static_cast<uint64_t>(from.imm)));
  if (v.is_deferred(o.src[0]) && from.op == Op::Load && !o.dtype.is_bool()) {
    const VReg dst = e.vec_reg(width);
    const Mem m = v.address(from.src[0], from.src[1], size, from.imm);
    e.emit(broadcast_opcode(size, width), width, dst).mem = m;
    return v.set(id, dst);
  }
  v.set(id, broadcast(e, o.dtype, v.use(o.src[0])), v.mask_lane(id));
}

void select_ramp(Values& v, LinearId id) {
  Emitter& e = v.emitter();
  const LinearOp& o = v.op(id);
  if (o.dtype.lanes == 1) return v.define(id, v.use(o.src[0]), true);
  if (v.is_const(o.src[0]))
    return v.set(id, iota(e, o.dtype, static_cast<uint64_t>(v.source(o, 0).imm), o.imm));
  const VReg steps = iota(e, o.dtype, 0, o.imm);
  v.set(id, vector_int_binary(e, Op::Add, o.dtype, broadcast(e, o.dtype, v.use(o.src[0])), steps,
                              kNoReg));
}

void select_fold(Values& v, LinearId id) {
  Emitter& e = v.emitter();
  const LinearOp& o = v.op(id);
  const DType d = v.source(o, 0).dtype;
  const Op combine = static_cast<Op>(o.aux);
  if (is_mask(d)) {
    const int64_t lane = v.mask_lane(o.src[0]);
    return v.set(id, fold_mask(e, combine, d.lanes, v.mask_in(o.src[0], lane), lane));
  }
  v.set(id, fold(e, combine, d, v.use(o.src[0])));
}

// What the target cannot do to vectors is done to their lanes.
void scalarise(Values& v, LinearId id) {
  Emitter& e = v.emitter();
  const LinearOp& o = v.op(id);
  std::vector<VReg> lanes;
  VReg src[2] = {kNoReg, kNoReg};
  for (size_t s = 0; s < o.count; ++s) src[s] = v.use(o.src[s]);
  for (int64_t l = 0; l < o.dtype.lanes; ++l) {
    const VReg a = extract(e, v.source(o, 0).dtype, src[0], l);
    if (o.op == Op::Cast)
      lanes.push_back(cast_scalar(e, v.source(o, 0).dtype.element(), o.dtype.element(), a));
    else
      lanes.push_back(
          binary(e, o.op, o.dtype.element(), a, extract(e, v.source(o, 1).dtype, src[1], l)));
  }
  v.set(id, assemble(e, o.dtype, lanes));
}

}  // namespace tiny::x86
