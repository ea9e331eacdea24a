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
    const auto is_shared = [&](LinearId i) {
      return readers_[i] > 1 && kept_in(ops_[i]) == Kept::Vector;
    };
    std::ptrdiff_t shared = 0;
    for (LinearId i = begin_; i < end_; ++i) shared += is_shared(i) ? 1 : 0;
    return count + shared > target.vector_registers;
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

  // Sums in the order in which they come first, each with its steps; what a step needs stands
  // before it.
  std::vector<LinearId> by_sums() const {
    std::vector<size_t> first(sets_.size());  // of each set, the first one of its sum
    std::vector<std::pair<LinearId, size_t>> known;
    for (size_t i = 0; i < sets_.size(); ++i) {
      const LinearId sum = ops_[sets_[i]].src[0];
      const auto at = std::ranges::find(known, sum, &std::pair<LinearId, size_t>::first);
      first[i] = at == known.end() ? i : at->second;
      if (at == known.end()) known.emplace_back(sum, i);
    }
    std::vector<size_t> order(sets_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::sort(order, {}, [&](size_t i) { return std::pair(first[i], i); });
    std::vector<LinearId> out;
    std::vector<uint8_t> placed(end_ - begin_);
    for (const size_t i : order) place(sets_[i], placed, out);
    for (LinearId i = begin_; i < end_; ++i) place(i, placed, out);
    return out;
  }

 private:
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
    if (!piece.is_crowded(target) || !piece.is_of_sums()) continue;
    if (last_use.empty()) last_use = last_uses(ops);
    const RegisterCount registers(program, last_use, first, i);
    const auto place = order.begin() + first;
    if (registers.fits({{place, place + (i - first)}, {}}, target)) continue;
    std::vector<LinearId> by_sums = piece.by_sums();
    if (!registers.fits({by_sums, {}}, target)) continue;
    std::ranges::copy(by_sums, place);
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
