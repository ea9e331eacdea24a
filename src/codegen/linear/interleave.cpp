#include "codegen/linear/interleave.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <unordered_map>
#include <vector>

#include "base/look_often.h"

namespace tiny {

namespace {

constexpr int kIntegerRegisters = 13;

bool ends_piece(Op op) {
  return op == Op::Loop || op == Op::EndLoop || op == Op::If || op == Op::EndIf ||
         op == Op::Check || op == Op::Accumulator;
}

enum class Kept : uint8_t { Nowhere, Integer, Vector };  // the register that a value needs
constexpr size_t kKinds = 3;

Kept kept_in(const LinearOp& op) {
  if (op.dtype == kVoid || op.op == Op::Param || op.op == Op::Scratch) return Kept::Nowhere;
  if (op.dtype.is_float() || (op.dtype.lanes > 1 && !op.dtype.is_bool())) return Kept::Vector;
  return op.op == Op::Const || op.dtype.lanes > 1 ? Kept::Nowhere : Kept::Integer;
}

class Interleaver {
 public:
  Interleaver(LinearProgram& program, const Target& target, int chain_min)
      : program_(program),
        target_(target),
        chain_min_(chain_min),
        order_(program.ops.size()),
        level_(order_.size()) {
    std::iota(order_.begin(), order_.end(), LinearId{0});
  }

  void run() {
    find_last_uses();
    bool changed = false;
    LinearId begin = 0;
    for (LinearId i = 0; i <= ops().size(); ++i) {
      if (i < ops().size() && !ends_piece(ops()[i].op)) continue;
      if (i > begin) changed |= arrange(begin, i);
      begin = i + 1;
    }
    if (changed) write();
  }

 private:
  const std::vector<LinearOp>& ops() const { return program_.ops; }

  // Where each value is read last; what a loop reads from outside is wanted until the loop ends.
  void find_last_uses() {
    last_use_.assign(ops().size(), 0);
    std::vector<LinearId> end_of(ops().size(), 0), loops;
    for (LinearId i = 0; i < ops().size(); ++i)
      if (ops()[i].op == Op::EndLoop) end_of[ops()[i].src[0]] = i;
    for (LinearId i = 0; i < ops().size(); ++i) {
      const LinearOp& op = ops()[i];
      if (op.op == Op::EndLoop) loops.pop_back();
      for (size_t s = 0; s < op.count; ++s) {
        const auto outer = std::ranges::upper_bound(loops, op.src[s]);
        const LinearId until = outer == loops.end() ? i : end_of[*outer];
        last_use_[op.src[s]] = std::max(last_use_[op.src[s]], until);
      }
      if (op.op == Op::Loop) loops.push_back(i);
    }
  }

  // Orders the ops from `begin` to before `end`; whether anything moves.
  bool arrange(LinearId begin, LinearId end) {
    begin_ = begin;
    end_ = end;
    if (longest_chain() < chain_min_ || !knows_memory()) return false;
    set_levels();
    sink();
    std::vector<LinearId> sorted(order_.begin() + begin, order_.begin() + end);
    std::ranges::stable_sort(sorted, {}, [&](LinearId i) { return level_[i]; });
    if (!fits_registers(sorted)) return false;
    std::ranges::copy(sorted, order_.begin() + begin);
    return true;
  }

  bool is_inside(LinearId id) const { return id >= begin_ && id < end_; }

  // Of vector arithmetic: sums over accumulators are no chains, since each is set before it is
  // read.
  int longest_chain() {
    int longest = 0;
    for (LinearId i = begin_; i < end_; ++i) {
      const LinearOp& op = ops()[i];
      int& length = level_[i] = 0;
      if (op.dtype.lanes == 1 || !has(op.op, kElementwise)) continue;
      for (size_t s = 0; s < op.count; ++s)
        if (is_inside(op.src[s])) length = std::max(length, level_[op.src[s]]);
      longest = std::max(longest, ++length);
    }
    return longest;
  }

  // What an address is in: scratch and parameters never meet, parameters may.
  Op memory_of(LinearId address) const {
    while (ops()[address].op == Op::Address) address = ops()[address].src[0];
    return ops()[address].op;
  }
  bool is_scratch(LinearId address) const { return memory_of(address) == Op::Scratch; }
  bool knows_memory() const {
    for (LinearId i = begin_; i < end_; ++i) {
      if (ops()[i].op != Op::Load && ops()[i].op != Op::Store) continue;
      const Op memory = memory_of(ops()[i].src[0]);
      if (memory != Op::Param && memory != Op::Scratch) return false;
    }
    return true;
  }

  void set_levels() {
    struct Order {
      int read = -1;  // the last level so far
      int written = -1;
    };
    Order memory[2];
    std::unordered_map<LinearId, Order> accumulators;
    stored_[0] = stored_[1] = false;
    for (LinearId i = begin_; i < end_; ++i) {
      const LinearOp& op = ops()[i];
      int level = 0;
      for (size_t s = 0; s < op.count; ++s) {
        if (is_inside(op.src[s])) level = std::max(level, level_[op.src[s]] + 1);
        if (ops()[op.src[s]].op != Op::Accumulator) continue;
        Order& known = accumulators[op.src[s]];
        const bool sets = op.op == Op::Set && s == 0;
        level = std::max(level, (sets ? std::max(known.read, known.written) : known.written) + 1);
      }
      if (op.op == Op::Load || op.op == Op::Store) {
        const size_t where = is_scratch(op.src[0]) ? 1 : 0;
        Order& known = memory[where];
        const bool store = op.op == Op::Store;
        level = std::max(level, (store ? std::max(known.read, known.written) : known.written) + 1);
        int& latest = store ? known.written : known.read;
        latest = std::max(latest, level);
        stored_[where] |= store;
      }
      for (size_t s = 0; s < op.count; ++s) {
        if (ops()[op.src[s]].op != Op::Accumulator) continue;
        Order& known = accumulators[op.src[s]];
        int& latest = op.op == Op::Set && s == 0 ? known.written : known.read;
        latest = std::max(latest, level);
      }
      level_[i] = level;
    }
  }

  // What waits for nothing is not made long before it is wanted.
  void sink() {
    std::vector<int> wanted(end_ - begin_, std::numeric_limits<int>::max());
    for (LinearId i = end_; i-- > begin_;) {
      const LinearOp& op = ops()[i];
      bool moves = kept_in(op) == Kept::Integer || op.op == Op::Broadcast || op.op == Op::Load;
      if (op.op == Op::Load) moves = !stored_[is_scratch(op.src[0]) ? 1 : 0];
      for (size_t s = 0; s < op.count; ++s) moves = moves && ops()[op.src[s]].op != Op::Accumulator;
      look_often(program_.stop, i);
      const int soonest = wanted[i - begin_];
      if (moves && soonest != std::numeric_limits<int>::max())
        level_[i] = std::max(level_[i], soonest - 1);
      for (size_t s = 0; s < op.count; ++s)
        if (is_inside(op.src[s])) {
          int& by = wanted[op.src[s] - begin_];
          by = std::min(by, level_[i]);
        }
    }
  }

  bool fits_registers(const std::vector<LinearId>& sorted) const {
    int64_t live[kKinds] = {};
    std::unordered_map<LinearId, size_t>
        last;  // of values inside, by place; constants from outside
    for (size_t at = 0; at < sorted.size(); ++at) {
      const LinearOp& op = ops()[sorted[at]];
      for (size_t s = 0; s < op.count; ++s) {
        const bool first = last.insert_or_assign(op.src[s], at).second;
        if (first && ops()[op.src[s]].op == Op::Const && !is_inside(op.src[s]))
          ++live[static_cast<size_t>(kept_in(ops()[op.src[s]]))];
      }
    }
    for (LinearId i = 0; i < begin_; ++i)
      if (last_use_[i] >= begin_ && ops()[i].op != Op::Const)
        ++live[static_cast<size_t>(kept_in(ops()[i]))];
    for (size_t at = 0; at < sorted.size(); ++at) {
      const LinearOp& op = ops()[sorted[at]];
      for (size_t s = 0; s < op.count; ++s) {
        const LinearId source = op.src[s];
        const bool again = std::find(op.src.begin(), op.src.begin() + s, source) !=
                           op.src.begin() + static_cast<std::ptrdiff_t>(s);
        if (!again && is_inside(source) && last.at(source) == at && last_use_[source] < end_)
          --live[static_cast<size_t>(kept_in(ops()[source]))];
      }
      ++live[static_cast<size_t>(kept_in(op))];
      if (live[static_cast<size_t>(Kept::Vector)] > target_.vector_registers) return false;
      if (live[static_cast<size_t>(Kept::Integer)] > kIntegerRegisters) return false;
    }
    return true;
  }

  void write() {
    std::vector<LinearId> place(order_.size());
    for (LinearId i = 0; i < order_.size(); ++i) place[order_[i]] = i;
    std::vector<LinearOp> out;
    out.reserve(order_.size());
    for (LinearId i : order_) {
      LinearOp op = ops()[i];
      for (size_t s = 0; s < op.count; ++s) op.src[s] = place[op.src[s]];
      out.push_back(op);
    }
    program_.ops = std::move(out);
  }

  LinearProgram& program_;
  const Target& target_;
  const int chain_min_;
  std::vector<LinearId> order_;
  std::vector<int> level_;
  std::vector<LinearId> last_use_;
  LinearId begin_ = 0, end_ = 0;
  bool stored_[2] = {};  // whether the piece stores to parameters, to scratch
};

}  // namespace

void interleave(LinearProgram& program, const Target& target, int chain_min) {
  Interleaver(program, target, chain_min).run();
}

}  // namespace tiny
