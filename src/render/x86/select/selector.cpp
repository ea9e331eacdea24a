#include "render/x86/select/selector.h"

#include "base/look_often.h"
#include "render/x86/select.h"
#include "render/x86/select/arithmetic.h"
#include "render/x86/select/ops.h"

namespace tiny::x86 {

MachineProgram select(const LinearProgram& program, bool avx512, DotSet tiles) {
  return Selector(program, avx512, tiles).run();
}

Selector::Selector(const LinearProgram& program, bool avx512, DotSet tiles)
    : program_(program),
      emitter_(program, avx512),
      values_(program, emitter_),
      squares_(values_, values_.facts(), avx512),
      entry_(values_),
      addresses_(values_),
      blocks_(values_, addresses_),
      tiles_(program, values_, avx512 ? tiles : 0) {
}

MachineProgram Selector::run() {
  for (LinearId id = 0, end = values_.size(); id < end; ++id) {
    look_often(program_.stop, id);
    emitter_.make_for(id);
    tiles_.begin(id);
    if (!tiles_.has(id)) select_op(id);
  }
  entry_.end();
  tiles_.end();
  return emitter_.finish();
}

void Selector::select_op(LinearId id) {
  const LinearOp& o = values_.op(id);
  if (o.dtype != kVoid && o.dtype.lanes * o.dtype.bytes() > emitter_.register_bytes())
    emitter_.unsupported("does not fit a register");
  if ((o.dtype.lanes & (o.dtype.lanes - 1)) != 0)
    emitter_.unsupported("lanes are not a power of two");
  switch (o.op) {
    case Op::Const:
      break;  // made where it is used
    case Op::Param:
    case Op::Scratch:
    case Op::Variable:
    case Op::LaunchArg:
      return entry_.select_value(id);
    case Op::Address:
      return addresses_.select(id);
    case Op::Load:
      return select_load(values_, id);
    case Op::Store:
      return select_store(values_, squares_, id);
    case Op::Loop:
      return blocks_.select_loop(id);
    case Op::EndLoop:
      blocks_.select_end_loop(id, tiles_.multiply(id));
      return tiles_.store(id);
    case Op::If:
      return blocks_.select_if(id);
    case Op::EndIf:
      blocks_.select_end_if();
      return tiles_.store(id);
    case Op::Accumulator:
      select_accumulator(values_, id);
      if (!is_mask(o.dtype) && emitter_.class_of(o.dtype) == RegClass::Vec) blocks_.hold(id);
      return;
    case Op::Set:
      return select_set(values_, id);
    case Op::Broadcast:
      return select_broadcast(values_, id);
    case Op::Ramp:
      return select_ramp(values_, id);
    case Op::LaneRange:
      return select_lane_range(values_, id);
    case Op::Fold:
      return select_fold(values_, id);
    case Op::Dot:
      return select_dot(values_, id);
    case Op::Prefetch:
      return select_prefetch(values_, id);
    case Op::Check:
      return entry_.select_check(id);
    case Op::Poll:
      return entry_.select_poll();
    default:
      if (!has(o.op, kElementwise) || !legal_in(o.op, kLinearStage))
        emitter_.unsupported("is no op of a linear program");
      return select_elementwise(id);
  }
}

void Selector::select_elementwise(LinearId id) {
  const LinearOp& o = values_.op(id);
  switch (o.op) {
    case Op::Cast:
      return select_cast(values_, id);
    case Op::Bitcast:
      return select_bitcast(values_, id);
    case Op::Where:
      return select_where(values_, id);
    case Op::Fma:
      return select_fma(values_, id);
    case Op::Less:
    case Op::LessEqual:
    case Op::Equal:
    case Op::NotEqual:
      return select_compare(values_, id);
    default:
      break;
  }
  if (o.count == 2) return select_binary(values_, id);
  if (is_mask(o.dtype)) return select_mask_logic(values_, id);
  values_.define(id, unary(emitter_, o.op, o.dtype, values_.use(o.src[0])), true);
}

}  // namespace tiny::x86
