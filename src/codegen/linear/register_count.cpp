#include "codegen/linear/register_count.h"

#include <algorithm>
#include <limits>

#include "base/look_often.h"

namespace tiny {

namespace {

constexpr size_t kNone = std::numeric_limits<size_t>::max();
constexpr int kIntegerRegisters = 13;
// For the constants of a piece, which are read from memory where registers are wanted.
constexpr int64_t kConstantRegisters = 3;
// The share of a target's registers by which an order may want more: what is spilled of a window is
// little beside what it computes.
constexpr int64_t kSpilledShare = 8;

}  // namespace

Kept kept_in(const LinearOp& op) {
  if (op.dtype == kVoid || op.op == Op::Param || op.op == Op::Scratch || op.op == Op::Const)
    return Kept::Nowhere;
  if (op.dtype.is_float() || (op.dtype.lanes > 1 && !op.dtype.is_bool())) return Kept::Vector;
  return op.dtype.lanes > 1 ? Kept::Nowhere : Kept::Integer;
}

std::vector<LinearId> last_uses(const std::vector<LinearOp>& ops) {
  std::vector<LinearId> last(ops.size(), 0), end_of(ops.size(), 0), loops;
  for (LinearId i = 0; i < ops.size(); ++i)
    if (ops[i].op == Op::EndLoop) end_of[ops[i].src[0]] = i;
  for (LinearId i = 0; i < ops.size(); ++i) {
    const LinearOp& op = ops[i];
    if (op.op == Op::EndLoop) loops.pop_back();
    for (size_t s = 0; s < op.count; ++s) {
      const auto outer = std::ranges::upper_bound(loops, op.src[s]);
      const LinearId until = outer == loops.end() ? i : end_of[*outer];
      last[op.src[s]] = std::max(last[op.src[s]], until);
    }
    if (op.op == Op::Loop) loops.push_back(i);
  }
  return last;
}

size_t RegisterCount::register_of(LinearId source) {
  if (is_inside(source)) return source - begin_;
  return outside_.try_emplace(source, reads_.size() + outside_.size()).first->second;
}

RegisterCount::RegisterCount(const LinearProgram& program, std::span<const LinearId> last_use,
                             LinearId begin, LinearId end)
    : program_(program), begin_(begin), reads_(end - begin) {
  const std::vector<LinearOp>& ops = program.ops;
  bool has_constants = false;
  for (LinearId i = begin; i < end; ++i) {
    std::array<size_t, 4>& reads = reads_[i - begin];
    reads.fill(kNone);
    size_t count = 0;
    for (size_t s = 0; s < ops[i].count; ++s) {
      const LinearOp& source = ops[ops[i].src[s]];
      has_constants |= source.op == Op::Const && source.dtype.lanes > 1;
      if (kept_in(source) != Kept::Nowhere) reads[count++] = register_of(ops[i].src[s]);
    }
  }
  const auto made = [&](LinearId i) { return Register{kept_in(ops[i]), last_use[i] >= end, i}; };
  registers_.resize(reads_.size() + outside_.size());
  for (LinearId i = begin; i < end; ++i) registers_[i - begin] = made(i);
  for (const auto& [value, number] : outside_) registers_[number] = made(value);
  for (LinearId i = 0; i < begin; ++i)
    if (last_use[i] >= begin) ++live_before_[static_cast<size_t>(kept_in(ops[i]))];
  if (has_constants) live_before_[static_cast<size_t>(Kept::Vector)] += kConstantRegisters;
}

std::vector<LinearId> RegisterCount::read_late(
    const std::function<size_t(LinearId)>& window_of) const {
  std::vector<size_t> window(registers_.size(), kNone);
  for (size_t at = 0; at < reads_.size(); ++at) {
    const auto op = static_cast<LinearId>(begin_ + at);
    for (const size_t r : reads_[at]) {
      if (r == kNone || r < reads_.size()) continue;
      const size_t here = window_of(op);
      const bool stays = program_.ops[op].op == Op::Set || registers_[r].stays ||
                         registers_[r].kept != Kept::Vector ||
                         (window[r] != kNone && window[r] != here);
      window[r] = stays ? 0 : here;
    }
  }
  std::vector<LinearId> late;
  for (size_t r = reads_.size(); r < registers_.size(); ++r)
    if (window[r] != kNone && window[r] > 0) late.push_back(registers_[r].value);
  std::ranges::sort(late);
  return late;
}

std::array<int64_t, 3> RegisterCount::most(const PieceOrder& order) const {
  std::array<int64_t, 3> live = live_before_;
  std::vector<size_t> last(registers_.size(), kNone);  // where the order reads it last
  for (size_t i = 0; i < order.ops.size(); ++i)
    for (const size_t r : reads_[order.ops[i] - begin_])
      if (r != kNone) last[r] = registers_[r].stays ? kNone : i;
  for (const LinearId value : order.parked) last[outside_.at(value)] = kNone;
  live[static_cast<size_t>(Kept::Vector)] -= static_cast<int64_t>(order.parked.size());
  std::array<int64_t, 3> out{};
  for (size_t i = 0; i < order.ops.size(); ++i) {
    look_often(program_.stop, i);
    const size_t own = order.ops[i] - begin_;
    for (const size_t r : reads_[own])
      if (r != kNone && last[r] == i) {
        --live[static_cast<size_t>(registers_[r].kept)];
        last[r] = kNone;
      }
    ++live[static_cast<size_t>(registers_[own].kept)];
    for (size_t k = 0; k < out.size(); ++k) out[k] = std::max(out[k], live[k]);
  }
  return out;
}

bool RegisterCount::fits(const PieceOrder& order, const Target& target) const {
  const std::array<int64_t, 3> live = most(order);
  const int64_t held = target.vector_registers + target.vector_registers / kSpilledShare;
  return live[static_cast<size_t>(Kept::Integer)] <= kIntegerRegisters &&
         live[static_cast<size_t>(Kept::Vector)] <= held;
}

int64_t RegisterCount::vectors(const PieceOrder& order) const {
  return most(order)[static_cast<size_t>(Kept::Vector)];
}

}  // namespace tiny
