#include "codegen/linear_passes.h"

#include <vector>

namespace tiny {

namespace {

std::vector<uint32_t> count_uses(const LinearProgram& program) {
  std::vector<uint32_t> uses(program.ops.size());
  for (const LinearOp& op : program.ops)
    for (size_t i = 0; i < op.count; ++i) ++uses[op.src[i]];
  return uses;
}

}  // namespace

void form_sub(LinearProgram& program) {
  for (LinearOp& op : program.ops) {
    if (op.op != Op::Add) continue;
    for (const size_t side : {size_t{1}, size_t{0}}) {
      const LinearOp& negated = program.ops[op.src[side]];
      if (negated.op != Op::Neg) continue;
      op.op = Op::Sub;
      op.src = {op.src[1 - side], negated.src[0]};
      break;
    }
  }
}

void form_fma(LinearProgram& program) {
  const std::vector<uint32_t> uses = count_uses(program);
  for (LinearOp& op : program.ops) {
    if (op.op != Op::Add ||
        (op.dtype.scalar != ScalarType::Float32 && op.dtype.scalar != ScalarType::Float64))
      continue;
    for (const size_t side : {size_t{1}, size_t{0}}) {
      const LinearOp& product = program.ops[op.src[side]];
      if (product.op != Op::Mul || uses[op.src[side]] != 1) continue;
      op.op = Op::Fma;
      op.count = 3;
      op.src = {product.src[0], product.src[1], op.src[1 - side]};
      break;
    }
  }
}

void remove_dead(LinearProgram& program) {
  std::vector<uint8_t> live(program.ops.size());
  for (size_t i = program.ops.size(); i-- > 0;) {
    const LinearOp& op = program.ops[i];
    if (!live[i] && (op.op == Op::Accumulator || !has(op.op, kEffect))) continue;
    live[i] = 1;
    for (size_t s = 0; s < op.count; ++s) live[op.src[s]] = 1;
  }
  std::vector<LinearId> place(program.ops.size());
  std::vector<LinearOp> kept;
  for (size_t i = 0; i < program.ops.size(); ++i) {
    if (!live[i]) continue;
    LinearOp op = program.ops[i];
    for (size_t s = 0; s < op.count; ++s) op.src[s] = place[op.src[s]];
    place[i] = static_cast<LinearId>(kept.size());
    kept.push_back(op);
  }
  program.ops = std::move(kept);
}

}  // namespace tiny
