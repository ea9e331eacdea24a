// Comparisons, choices and logic, by the linear op.
#include <algorithm>
#include <vector>

#include "render/x86/select/comparisons.h"
#include "render/x86/select/integers.h"
#include "render/x86/select/masks.h"
#include "render/x86/select/ops.h"
#include "render/x86/select/values.h"

namespace tiny::x86 {

void select_compare(Values& v, LinearId id) {
  Emitter& e = v.emitter();
  const LinearOp& o = v.op(id);
  const DType d = v.source(o, 0).dtype;
  if (is_mask(d)) return select_mask_logic(v, id);
  if (in_int(d)) {
    const OpFacts& f = v.facts(id);
    if (f.uses == 1 && v.op(f.user).op == Op::If && v.facts(f.user).epoch == f.epoch + 1) {
      v.defer(id);  // compared by the jump
      return;
    }
    const VReg a = v.use(o.src[0]);
    return v.set(id, int_compare(e, o.op, d, a, v.use_operand(o.src[1])));
  }
  const VReg a = v.use(o.src[0]);
  if (d.lanes > 1)
    return v.set(id, compare(e, o.op, d, a, v.use_operand(o.src[1])), e.avx512() ? 0 : d.bytes());
  v.set(id, compare_floats(e, o.op, d, a, v.use(o.src[1])));
}

void select_where(Values& v, LinearId id) {
  Emitter& e = v.emitter();
  const LinearOp& o = v.op(id);
  const DType d = o.dtype;
  if (is_mask(d)) return select_mask_logic(v, id);
  if (in_int(d)) {
    const VReg c = v.use(o.src[0]);
    const VReg a = v.use(o.src[1]);
    return v.set(id, int_select(e, c, a, v.use(o.src[2])));
  }
  const VReg mask = d.lanes > 1 ? v.mask_in(o.src[0], d.bytes()) : scalar_mask(e, v.use(o.src[0]));
  const LinearOp* no = &v.source(o, 2);
  if (no->op == Op::Broadcast) no = &v.source(*no, 0);
  const VReg yes = v.use(o.src[1]);
  if (no->op == Op::Const && no->imm == 0) return v.set(id, keep(e, d, mask, yes));
  v.set(id, pick(e, d, mask, yes, v.use(o.src[2])));
}

void select_mask_logic(Values& v, LinearId id) {
  Emitter& e = v.emitter();
  const LinearOp& o = v.op(id);
  const int64_t lane = v.mask_lane(id), width = mask_width(o.dtype.lanes, lane);
  const auto in = [&](size_t s) { return v.mask_in(o.src[s], lane); };
  const VReg a = in(0);
  switch (o.op) {
    case Op::Neg:
    case Op::Abs:
    case Op::Cast:  // the value itself, which an accumulator's register will not keep
      return v.set(id, e.move(e.avx512() ? RegClass::Mask : RegClass::Vec, width, a), lane);
    case Op::Not:
      return v.set(id, mask_not(e, width, a), lane);
    case Op::Where: {
      const VReg yes = mask_binary(e, Op::And, width, a, in(1));
      const VReg no = mask_binary(e, Op::And, width, mask_not(e, width, a), in(2));
      return v.set(id, mask_binary(e, Op::Or, width, yes, no), lane);
    }
    case Op::Less:
      return v.set(id, mask_binary(e, Op::And, width, mask_not(e, width, a), in(1)), lane);
    case Op::LessEqual:
      return v.set(id, mask_binary(e, Op::Or, width, mask_not(e, width, a), in(1)), lane);
    case Op::Equal:
      return v.set(id, mask_not(e, width, mask_binary(e, Op::Xor, width, a, in(1))), lane);
    case Op::NotEqual:
      return v.set(id, mask_binary(e, Op::Xor, width, a, in(1)), lane);
    case Op::Add:
    case Op::Sub:
    case Op::Mul:
    case Op::Max:
    case Op::Min:
    case Op::And:
    case Op::Or:
    case Op::Xor:
      return v.set(id, mask_binary(e, o.op, width, a, in(1)), lane);
    default:
      e.unsupported("is not an op of bools");
  }
}

void select_lane_range(Values& v, LinearId id) {
  Emitter& e = v.emitter();
  if (v.constant_mask(id)) return;  // made where it is used
  const LinearOp& o = v.op(id);
  const int64_t lanes = o.dtype.lanes, lane = v.mask_lane(id), width = mask_width(lanes, lane);
  const auto clamped = [&](LinearId from) {
    if (v.is_const(from)) return e.int_const(std::clamp<int64_t>(v.const_value(from), 0, lanes));
    const VReg low = int_binary(e, Op::Max, kInt64, v.use(from), e.int_const(0));
    return int_binary(e, Op::Min, kInt64, low, e.int_const(lanes));
  };
  const bool from_start = v.is_const(o.src[0]) && v.const_value(o.src[0]) <= 0;
  const VReg high = clamped(o.src[1]);
  const VReg low = from_start ? kNoReg : clamped(o.src[0]);
  if (e.avx512()) {
    const auto ones_below = [&](VReg n) {
      const VReg dst = e.int_reg();
      e.emit(Opcode::IBzhi, 8, dst, e.int_const(-1), n);
      return dst;
    };
    VReg bits = ones_below(high);
    if (!from_start) {
      const VReg outside = e.int_reg();
      e.emit(Opcode::INot, 8, outside, ones_below(low));
      bits = int_plain(e, Opcode::IAnd, 8, bits, outside);
    }
    return v.set(id, mask_from_bits(e, bits, lanes, lane));
  }
  std::vector<std::byte> numbers(static_cast<size_t>(width), std::byte{0});
  for (int64_t l = 0; l < lanes; ++l)
    numbers[static_cast<size_t>(l * lane)] = static_cast<std::byte>(l);
  const VReg iota = e.pool_reg(e.pool_bytes(std::move(numbers)), width);
  constexpr Opcode kSpread[] = {Opcode::vpbroadcastb, Opcode::vpbroadcastw, Opcode::vpbroadcastd,
                                Opcode::vpbroadcastq};
  constexpr Opcode kGreater[] = {Opcode::vpcmpgtb, Opcode::vpcmpgtw, Opcode::vpcmpgtd,
                                 Opcode::vpcmpgtq};
  const auto above = [&](VReg bound) {
    const VReg scalar = e.vec_reg(16);
    e.emit(Opcode::VFromInt, 16, scalar, bound).width2 = 8;
    return e.rrm(kGreater[log_of(lane)], width, e.rr(kSpread[log_of(lane)], width, scalar, 16),
                 iota);
  };
  VReg mask = above(high);
  if (!from_start) mask = e.rrm(Opcode::vandnps, width, above(low), mask);
  v.set(id, mask, lane);
}

}  // namespace tiny::x86
