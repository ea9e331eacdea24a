#include "codegen/linearize/emitter.h"

#include <array>

#include "base/error.h"
#include "ir/fold.h"

namespace tiny {

LinearId Emitter::constant(DType dtype, uint64_t bits) {
  // No node has it: its key is its bits and its dtype, which no widened value has.
  const uint64_t scalar = static_cast<uint64_t>(dtype.scalar) + 1;
  const InstanceKey key{nullptr, {bits, scalar}, static_cast<uint64_t>(dtype.lanes)};
  if (const LinearId* known = find(key)) return *known;
  const LinearId id = add(0, Op::Const, dtype, {}, static_cast<int64_t>(bits));
  remember(key, id);
  return id;
}

LinearId Emitter::widened(LinearId id, int64_t lanes) {
  const LinearOp& narrow = op(id);
  if (narrow.dtype.lanes == lanes) return id;
  invariant(narrow.dtype.lanes == 1, "a value is widened from one lane");
  const DType wide = narrow.dtype.with_lanes(lanes);
  if (narrow.op == Op::Const) return constant(wide, static_cast<uint64_t>(narrow.imm));
  const InstanceKey key{nullptr, {id, 0}, static_cast<uint64_t>(lanes)};
  if (const LinearId* known = find(key)) return *known;
  const LinearId out = add(depth_of(id), Op::Broadcast, wide, {id});
  remember(key, out);
  return out;
}

// Integers fold, so that coordinates disappear.
LinearId Emitter::elementwise(Op op_of, DType dtype, std::span<const LinearId> src) {
  int64_t lanes = 1;
  for (LinearId s : src) lanes = std::max<int64_t>(lanes, op(s).dtype.lanes);
  const auto is_const = [&](LinearId s, int64_t value) {
    const LinearOp& o = op(s);
    return o.op == Op::Const && o.dtype.is_int() &&
           int_of(o.dtype.element(), static_cast<uint64_t>(o.imm)) == value;
  };
  bool all_const = true;
  for (LinearId s : src) all_const = all_const && op(s).op == Op::Const;
  if (all_const) {
    std::array<uint64_t, 3> bits{};
    for (size_t i = 0; i < src.size(); ++i) bits[i] = static_cast<uint64_t>(op(src[i]).imm);
    const DType operand = op(src.back()).dtype.element();
    const uint64_t folded = fold_bits(op_of, dtype.element(), operand, bits.data());
    return constant(dtype.with_lanes(lanes), folded);
  }
  if (op_of == Op::Where && op(src[0]).op == Op::Const)
    return widened(src[op(src[0]).imm != 0 ? 1 : 2], lanes);
  if (op_of == Op::Add && is_const(src[0], 0)) return widened(src[1], lanes);
  if (op_of == Op::Add && is_const(src[1], 0)) return widened(src[0], lanes);
  if (op_of == Op::Mul && is_const(src[0], 1)) return widened(src[1], lanes);
  if (op_of == Op::Mul && is_const(src[1], 1)) return widened(src[0], lanes);
  size_t depth = least_depth_;
  std::array<LinearId, 3> wide{};
  for (size_t i = 0; i < src.size(); ++i) {
    wide[i] = widened(src[i], lanes);
    depth = std::max(depth, depth_of(wide[i]));
  }
  const DType out = dtype.with_lanes(lanes);
  switch (src.size()) {
    case 1:
      return add(depth, op_of, out, {wide[0]});
    case 2:
      return add(depth, op_of, out, {wide[0], wide[1]});
    default:
      return add(depth, op_of, out, {wide[0], wide[1], wide[2]});
  }
}

}  // namespace tiny
