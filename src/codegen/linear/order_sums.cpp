#include "codegen/linear/order_sums.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "codegen/linear/register_count.h"

namespace tiny {

namespace {

// Ops of one block of which nothing but sums is kept, from `begin` to before `end`.
class SumPiece {
 public:
  SumPiece(const LinearProgram& program, std::span<const uint32_t> readers, LinearId begin,
           LinearId end)
      : ops_(program.ops), readers_(readers), begin_(begin), end_(end) {
    for (LinearId i = begin; i < end; ++i)
      if (ops_[i].op == Op::Set) sets_.push_back(i);
  }

  // Whether sums take several steps each, and want more registers than there are beside what has
  // several readers.
  bool is_crowded(const Target& target) const {
    std::vector<LinearId> sums;
    for (const LinearId set : sets_) sums.push_back(ops_[set].src[0]);
    std::ranges::sort(sums);
    const auto count = std::unique(sums.begin(), sums.end()) - sums.begin();
    if (count < 2 || std::ssize(sets_) == count) return false;
    std::ptrdiff_t shared = 0;
    for (LinearId i = begin_; i < end_; ++i) shared += is_shared(i) ? 1 : 0;
    return count + shared > target.vector_registers;
  }

  // Whether it stores what is made of more shared loads than there are registers.
  bool is_crowded_with_loads(const Target& target) const {
    int64_t shared = 0;
    for (LinearId i = begin_; i < end_; ++i)
      shared += ops_[i].op == Op::Load && is_shared(i) ? 1 : 0;
    return sets_.empty() && shared > target.vector_registers;
  }

  // Whether it makes values and adds them up: a sum is read where it is added to, and nowhere else.
  bool is_of_sums() const {
    for (LinearId i = begin_; i < end_; ++i) {
      const LinearOp& op = ops_[i];
      if (op.op == Op::Set || op.op == Op::Prefetch) continue;
      if (op.dtype == kVoid) return false;
      for (size_t s = 0; s < op.count; ++s)
        if (ops_[op.src[s]].op == Op::Accumulator && !is_added_at_once(i, op.src[s])) return false;
    }
    return true;
  }

  // What is made of a value follows as soon as all else that it is made of is there: the loads of a
  // column of a tile are done with before those of the next.  Loads and stores stay in their order.
  std::vector<LinearId> by_readers() const {
    std::vector<std::vector<LinearId>> made_of(end_ - begin_);
    std::vector<uint32_t> waits(end_ - begin_);
    for (LinearId i = begin_; i < end_; ++i)
      for (size_t s = 0; s < ops_[i].count; ++s)
        if (const LinearId source = ops_[i].src[s]; source >= begin_)
          made_of[source - begin_].push_back(i), ++waits[i - begin_];
    std::vector<LinearId> out;
    std::vector<uint8_t> placed(end_ - begin_);
    for (LinearId i = begin_; i < end_; ++i) {
      std::vector<LinearId> stack{i};
      while (!stack.empty()) {
        const LinearId at = stack.back();
        stack.pop_back();
        if (std::exchange(placed[at - begin_], uint8_t{1})) continue;
        out.push_back(at);
        const std::vector<LinearId>& next = made_of[at - begin_];
        for (size_t k = next.size(); k-- > 0;)
          if (--waits[next[k] - begin_] == 0 && has(ops_[next[k]].op, kElementwise))
            stack.push_back(next[k]);
      }
    }
    return out;
  }

  // Of the sums' next steps always the one that leaves the fewest shared values waiting: a row that
  // the taps of a window share is read by one tap of each sum, and done with.
  std::vector<LinearId> by_shared_values() const {
    const std::vector<std::vector<Step>> sums = steps_of_sums();
    std::vector<uint32_t> left(end_ - begin_);  // steps that a shared value is still wanted by
    for (const std::vector<Step>& steps : sums)
      for (const Step& step : steps)
        for (const LinearId value : step.shared) ++left[value - begin_];
    std::vector<uint8_t> is_made(end_ - begin_);
    const auto more_waiting = [&](const Step& step) {
      int more = 0;
      for (const LinearId value : step.shared)
        more += (is_made[value - begin_] ? 0 : 1) - (left[value - begin_] == 1 ? 1 : 0);
      return more;
    };
    std::vector<size_t> next(sums.size());
    std::vector<LinearId> out;
    std::vector<uint8_t> placed(end_ - begin_);
    for (size_t done = 0; done < sets_.size(); ++done) {
      size_t best = sums.size();
      int least = 0;
      for (size_t i = 0; i < sums.size(); ++i) {
        if (next[i] == sums[i].size()) continue;
        const int more = more_waiting(sums[i][next[i]]);
        if (best == sums.size() || more < least) best = i, least = more;
      }
      const Step& step = sums[best][next[best]++];
      for (const LinearId value : step.shared) is_made[value - begin_] = 1, --left[value - begin_];
      place(step.set, placed, out);
    }
    for (LinearId i = begin_; i < end_; ++i) place(i, placed, out);
    return out;
  }

 private:
  bool is_shared(LinearId i) const { return readers_[i] > 1 && kept_in(ops_[i]) == Kept::Vector; }

  struct Step {
    LinearId set = 0;
    std::vector<LinearId> shared;  // values that it is made of
  };
  // Of each sum, in the order in which they come first.
  std::vector<std::vector<Step>> steps_of_sums() const {
    std::vector<std::vector<Step>> out;
    std::vector<LinearId> known;
    for (const LinearId set : sets_) {
      const auto at = std::ranges::find(known, ops_[set].src[0]);
      const auto number = static_cast<size_t>(at - known.begin());
      if (at == known.end()) known.push_back(ops_[set].src[0]);
      out.resize(known.size());
      out[number].push_back({set, shared_below(set)});
    }
    return out;
  }

  // The shared values of the piece that an op is made of.
  std::vector<LinearId> shared_below(LinearId op) const {
    std::vector<LinearId> out, stack{op};
    while (!stack.empty()) {
      const LinearOp& at = ops_[stack.back()];
      stack.pop_back();
      for (size_t s = 0; s < at.count; ++s) {
        const LinearId source = at.src[s];
        if (source < begin_ || source >= end_ || std::ranges::find(out, source) != out.end())
          continue;
        if (is_shared(source)) out.push_back(source);
        stack.push_back(source);
      }
    }
    return out;
  }

  bool is_added_at_once(LinearId i, LinearId sum) const {
    return readers_[i] == 1 && i + 1 < end_ && ops_[i + 1].op == Op::Set &&
           ops_[i + 1].src[0] == sum && ops_[i + 1].src[1] == i;
  }
  void place(LinearId i, std::vector<uint8_t>& placed, std::vector<LinearId>& out) const {
    std::vector<LinearId> stack{i};
    while (!stack.empty()) {
      const LinearId at = stack.back();
      const LinearOp& op = ops_[at];
      const auto waits_for = [&](LinearId source) {
        return source >= begin_ && source < end_ && !placed[source - begin_];
      };
      bool ready = true;
      if (!placed[at - begin_])
        for (size_t s = op.count; s-- > 0;)
          if (waits_for(op.src[s])) {
            stack.push_back(op.src[s]);
            ready = false;
          }
      if (!ready) continue;
      stack.pop_back();
      if (!std::exchange(placed[at - begin_], uint8_t{1})) out.push_back(at);
    }
  }

  const std::vector<LinearOp>& ops_;
  std::span<const uint32_t> readers_;
  const LinearId begin_, end_;
  std::vector<LinearId> sets_;
};

bool ends_piece(Op op) {
  return op == Op::Loop || op == Op::EndLoop || op == Op::If || op == Op::EndIf ||
         op == Op::Check || op == Op::Accumulator;
}

}  // namespace

void order_sums(LinearProgram& program, const Target& target) {
  const std::vector<LinearOp>& ops = program.ops;
  std::vector<uint32_t> readers(ops.size());
  for (const LinearOp& op : ops)
    for (size_t s = 0; s < op.count; ++s) ++readers[op.src[s]];
  std::vector<LinearId> order(ops.size());
  std::iota(order.begin(), order.end(), LinearId{0});
  std::vector<LinearId> last_use;
  bool changed = false;
  for (LinearId begin = 0, i = 0; i <= ops.size(); ++i) {
    if (i < ops.size() && !ends_piece(ops[i].op)) continue;
    const LinearId first = std::exchange(begin, i + 1);
    const SumPiece piece(program, readers, first, i);
    const bool is_of_sums = piece.is_crowded(target) && piece.is_of_sums();
    if (!is_of_sums && !piece.is_crowded_with_loads(target)) continue;
    if (last_use.empty()) last_use = last_uses(ops);
    const RegisterCount registers(program, last_use, first, i);
    const auto place = order.begin() + first;
    const int64_t wanted = registers.vectors({{place, place + (i - first)}, {}});
    if (wanted <= target.vector_registers) continue;
    const std::vector<LinearId> other = is_of_sums ? piece.by_shared_values() : piece.by_readers();
    if (registers.vectors({other, {}}) >= wanted) continue;
    std::ranges::copy(other, place);
    changed = true;
  }
  if (!changed) return;
  std::vector<LinearOp> out;
  std::vector<LinearId> now(ops.size());
  for (const LinearId i : order) {
    LinearOp op = ops[i];
    for (size_t s = 0; s < op.count; ++s) op.src[s] = now[op.src[s]];
    now[i] = static_cast<LinearId>(out.size());
    out.push_back(op);
  }
  program.ops = std::move(out);
}

}  // namespace tiny
