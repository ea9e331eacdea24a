#include "codegen/linear_passes.h"

#include <unordered_map>
#include <vector>

#include "base/hash.h"

namespace tiny {

namespace {

std::vector<uint32_t> count_uses(const LinearProgram& program) {
  std::vector<uint32_t> uses(program.ops.size());
  for (const LinearOp& op : program.ops)
    for (size_t i = 0; i < op.count; ++i) ++uses[op.src[i]];
  return uses;
}

// What makes two ops compute the same.
struct OpKey {
  LinearOp op;
  uint64_t epoch;  // of loads

  bool operator==(const OpKey& other) const {
    return op.op == other.op.op && op.dtype == other.op.dtype && op.count == other.op.count &&
           op.src == other.op.src && op.imm == other.op.imm && op.aux == other.op.aux &&
           epoch == other.epoch;
  }
};

struct OpKeyHash {
  size_t operator()(const OpKey& key) const {
    const LinearOp& o = key.op;
    uint64_t h = hash_mix(static_cast<uint64_t>(o.op), static_cast<uint64_t>(o.imm));
    h = hash_mix(h,
                 (uint64_t{o.dtype.lanes} << 32) | (static_cast<uint64_t>(o.dtype.scalar) << 16));
    for (LinearId s : o.src) h = hash_mix(h, s);
    return hash_mix(h, key.epoch ^ (static_cast<uint64_t>(static_cast<uint32_t>(o.aux)) << 32));
  }
};

}  // namespace

void merge_equal(LinearProgram& program) {
  std::unordered_map<OpKey, LinearId, OpKeyHash> known;
  std::vector<OpKey> made;       // in the open blocks
  std::vector<size_t> begin_of;  // where each open block's begin in `made`
  std::vector<LinearId> same(program.ops.size());
  uint64_t epoch = 1;
  for (LinearId i = 0; i < program.ops.size(); ++i) {
    LinearOp& op = program.ops[i];
    same[i] = i;
    bool steady = true;  // what reads an accumulator is worth what was last set
    for (size_t s = 0; s < op.count; ++s) {
      op.src[s] = same[op.src[s]];
      steady = steady && program.ops[op.src[s]].op != Op::Accumulator;
    }
    if (op.op == Op::EndLoop || op.op == Op::EndIf) {
      for (; made.size() > begin_of.back(); made.pop_back()) known.erase(made.back());
      begin_of.pop_back();
    }
    if (op.op == Op::Loop || op.op == Op::If) begin_of.push_back(made.size());
    if (op.op == Op::Store || op.op == Op::Loop || op.op == Op::EndLoop) ++epoch;
    if (has(op.op, kEffect) || op.dtype == kVoid || !steady) continue;
    const OpKey key{op, op.op == Op::Load ? epoch : 0};
    const auto [at, fresh] = known.try_emplace(key, i);
    if (fresh)
      made.push_back(key);
    else
      same[i] = at->second;
  }
}

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
