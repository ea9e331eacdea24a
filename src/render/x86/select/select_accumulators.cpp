// Values that are set more than once.
#include "render/x86/select/masks.h"
#include "render/x86/select/ops.h"
#include "render/x86/select/values.h"

namespace tiny::x86 {

namespace {

// Writes the value of `id` to the register `to`, which holds values of `dtype`.
void move_value(Values& v, LinearId id, VReg to, DType dtype, int64_t lane) {
  Emitter& e = v.emitter();
  if (v.is_const(id) && !is_mask(dtype)) {
    if (in_int(dtype)) {
      e.emit(Opcode::IMoveImm, 8, to).imm = v.const_value(id);
    } else {
      Inst& i = e.emit(Opcode::VLoadPool, width_of(dtype), to);
      i.mem.kind = MemKind::Pool;
      i.mem.id = e.pool_lane(static_cast<uint64_t>(v.op(id).imm), dtype.bytes());
    }
    return;
  }
  const VReg from = is_mask(dtype) ? v.mask_in(id, lane) : v.use(id);
  if (from == to) return;
  const int64_t width = in_int(dtype)    ? 8
                        : is_mask(dtype) ? mask_width(dtype.lanes, lane)
                                         : width_of(dtype);
  e.move(e.class_of(dtype), width, from, to);
}

}  // namespace

void select_accumulator(Values& v, LinearId id) {
  Emitter& e = v.emitter();
  const DType d = v.op(id).dtype;
  const int64_t lane = v.mask_lane(id);
  const int64_t width = is_mask(d) ? mask_width(d.lanes, lane) : width_of(d);
  const VReg reg = e.reg_of(e.class_of(d), width);
  move_value(v, v.op(id).src[0], reg, d, lane);
  v.set(id, reg, lane);
}

void select_set(Values& v, LinearId id) {
  const LinearId acc = v.op(id).src[0];
  move_value(v, v.op(id).src[1], v.made(acc), v.op(acc).dtype, v.mask_lane(acc));
}

}  // namespace tiny::x86
