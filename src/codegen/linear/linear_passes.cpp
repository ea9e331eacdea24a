#include "codegen/linear/linear_passes.h"

#include <bit>
#include <cstdint>
#include <vector>

#include "base/look_often.h"

namespace tiny {

namespace {

std::vector<uint32_t> count_uses(const LinearProgram& program) {
  std::vector<uint32_t> uses(program.ops.size());
  for (const LinearOp& op : program.ops)
    for (size_t i = 0; i < op.count; ++i) ++uses[op.src[i]];
  return uses;
}

// The ops that stand in an open block, found by what they compute.  Nothing is taken out: what
// stands in a block that is done gives way.
class OpTable {
 public:
  explicit OpTable(const LinearProgram& program)
      : ops_(program.ops), slots_(std::bit_ceil(program.ops.size() * 2 + 1)), made_(ops_.size()) {
    is_open_.push_back(1);
    open_.push_back(0);
  }

  void open() {
    open_.push_back(static_cast<uint32_t>(is_open_.size()));
    is_open_.push_back(1);
  }
  void close() {
    is_open_[open_.back()] = 0;
    open_.pop_back();
  }

  // The op that computes the same as `i` and is visible here: perhaps itself.  Loads are the same
  // in one epoch.
  LinearId find(LinearId i, uint32_t epoch) {
    made_[i] = {open_.back(), epoch};
    const size_t mask = slots_.size() - 1;
    size_t at = hash(ops_[i], epoch) & mask;
    while (slots_[at] && !same(slots_[at] - 1, i)) at = (at + 1) & mask;
    if (slots_[at] && is_open_[made_[slots_[at] - 1].block]) return slots_[at] - 1;
    slots_[at] = i + 1;
    return i;
  }

 private:
  struct Made {
    uint32_t block = 0;
    uint32_t epoch = 0;
  };

  bool same(LinearId a, LinearId b) const {
    const LinearOp& x = ops_[a];
    const LinearOp& y = ops_[b];
    return x.op == y.op && x.dtype == y.dtype && x.count == y.count && x.src == y.src &&
           x.imm == y.imm && x.aux == y.aux && made_[a].epoch == made_[b].epoch;
  }
  static size_t hash(const LinearOp& o, uint32_t epoch) {
    constexpr uint64_t kOdd = 0x9E3779B97F4A7C15u;
    uint64_t h = static_cast<uint64_t>(o.imm) * kOdd + static_cast<uint64_t>(o.op);
    h = (h ^ (h >> 29) ^ (uint64_t{o.src[0]} << 32 | o.src[1])) * kOdd;
    h = (h ^ (h >> 31) ^ (uint64_t{o.src[2]} << 32 | o.src[3])) * kOdd;
    h ^= (uint64_t{o.dtype.lanes} << 40) ^ (static_cast<uint64_t>(o.dtype.scalar) << 34);
    h = (h ^ (h >> 30) ^ static_cast<uint32_t>(o.aux) ^ (uint64_t{epoch} << 8)) * kOdd;
    return static_cast<size_t>(h >> 32);
  }

  const std::vector<LinearOp>& ops_;
  std::vector<LinearId> slots_;  // op + 1, 0 if free
  std::vector<Made> made_;
  std::vector<uint32_t> open_;    // blocks, outer to inner
  std::vector<uint8_t> is_open_;  // by block
};

}  // namespace

void merge_equal(LinearProgram& program) {
  OpTable table(program);
  std::vector<LinearId> same(program.ops.size());
  uint32_t epoch = 1;
  for (LinearId i = 0; i < program.ops.size(); ++i) {
    look_often(program.stop, i);
    LinearOp& op = program.ops[i];
    same[i] = i;
    bool steady = true;  // what reads an accumulator is worth what was last set
    for (size_t s = 0; s < op.count; ++s) {
      op.src[s] = same[op.src[s]];
      steady = steady && program.ops[op.src[s]].op != Op::Accumulator;
    }
    if (op.op == Op::EndLoop || op.op == Op::EndIf) table.close();
    if (op.op == Op::Loop || op.op == Op::If) table.open();
    if (op.op == Op::Store || op.op == Op::Loop || op.op == Op::EndLoop || op.op == Op::Barrier ||
        op.op == Op::GroupFold || op.op == Op::CopyAsync || op.op == Op::WaitCopies ||
        op.op == Op::WaitMmas)
      ++epoch;
    if (has(op.op, kEffect) || op.dtype == kVoid || !steady) continue;
    same[i] = table.find(i, op.op == Op::Load ? epoch : 0);
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
  for (const LinearOp& set : program.ops) {
    if (set.op != Op::Set || uses[set.src[1]] != 1) continue;
    LinearOp& sum = program.ops[set.src[1]];
    if (sum.op != Op::Add ||
        (sum.dtype.scalar != ScalarType::Float32 && sum.dtype.scalar != ScalarType::Float64))
      continue;
    for (const size_t side : {size_t{1}, size_t{0}}) {
      const LinearOp& product = program.ops[sum.src[side]];
      if (product.op != Op::Mul || uses[sum.src[side]] != 1 || sum.src[1 - side] != set.src[0])
        continue;
      sum.op = Op::Fma;
      sum.count = 3;
      sum.src = {product.src[0], product.src[1], set.src[0]};
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
