#include "codegen/linear/interleave.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/look_often.h"

namespace tiny {

namespace {

constexpr int kIntegerRegisters = 13;
// For the constants of a piece, which are read from memory where registers are wanted.
constexpr int64_t kConstantRegisters = 3;
// Chains side by side where all do not fit: so many hide the latency of each other's steps (four
// cycles on two units); fewer than the last gain nothing.
constexpr size_t kWindows[] = {8, 6, 5, 4, 3};
// The share of a target's registers by which windows may want more: what is spilled of a window is
// little beside what it computes.
constexpr int64_t kSpilledShare = 8;
constexpr int64_t kParkedAlignment = 64;

bool ends_piece(Op op) {
  return op == Op::Loop || op == Op::EndLoop || op == Op::If || op == Op::EndIf ||
         op == Op::Check || op == Op::Accumulator;
}

constexpr size_t kNone = std::numeric_limits<size_t>::max();

enum class Kept : uint8_t { Nowhere, Integer, Vector };  // the register that a value needs
constexpr size_t kKinds = 3;

Kept kept_in(const LinearOp& op) {
  if (op.dtype == kVoid || op.op == Op::Param || op.op == Op::Scratch || op.op == Op::Const)
    return Kept::Nowhere;
  if (op.dtype.is_float() || (op.dtype.lanes > 1 && !op.dtype.is_bool())) return Kept::Vector;
  return op.dtype.lanes > 1 ? Kept::Nowhere : Kept::Integer;
}

// Where each value is read last; what a loop reads from outside is wanted until the loop ends.
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

// Ops without loops, ifs and checks among them, from `begin` to before `end`.
class Piece {
 public:
  Piece(const LinearProgram& program, const Target& target, std::span<const LinearId> last_use,
        LinearId begin, LinearId end)
      : ops_(program.ops),
        stop_(program.stop),
        target_(target),
        last_use_(last_use),
        begin_(begin),
        end_(end),
        level_(end - begin),
        group_(end - begin) {}

  // Its order, and what waits in scratch until its window; no order: it stays.
  struct Order {
    std::vector<LinearId> ops;
    std::vector<LinearId> parked;
  };
  Order arrange(int chain_min) {
    if (longest_chain() < chain_min || !knows_memory()) return {};
    find_order();
    set_levels();
    find_groups(chain_min);
    find_registers();
    by_level_.resize(level_.size());
    std::iota(by_level_.begin(), by_level_.end(), begin_);
    std::ranges::stable_sort(by_level_, {}, [&](LinearId i) { return level_[at(i)]; });
    Order order = windowed(groups_);
    if (fits_registers(order)) return order;
    for (const size_t width : kWindows) {
      if (width >= groups_) continue;
      order = windowed(width);
      if (fits_registers(order)) return order;
      park(order, width);
      if (!order.parked.empty() && fits_registers(order)) return order;
    }
    return {};
  }

 private:
  bool is_inside(LinearId id) const { return id >= begin_ && id < end_; }
  size_t at(LinearId id) const { return id - begin_; }

  // Of vector arithmetic: sums over accumulators are no chains, since each is set before it is
  // read.
  int longest_chain() {
    int longest = 0;
    for (LinearId i = begin_; i < end_; ++i) {
      const LinearOp& op = ops_[i];
      int& length = level_[at(i)] = 0;
      if (op.dtype.lanes == 1 || !has(op.op, kElementwise)) continue;
      for (size_t s = 0; s < op.count; ++s)
        if (is_inside(op.src[s])) length = std::max(length, level_[at(op.src[s])]);
      longest = std::max(longest, ++length);
    }
    return longest;
  }

  // The Param or Scratch that an address is in.
  LinearId memory_of(LinearId address) const {
    while (ops_[address].op == Op::Address) address = ops_[address].src[0];
    return address;
  }
  // Scratch as one, each parameter for itself: a parameter that a kernel only reads lies apart from
  // those that it writes, or is read where it is written and there alone (engine/reuse.h), so that
  // no load minds a store of another place going after it.
  int64_t place_of(LinearId address) const {
    const LinearOp& memory = ops_[memory_of(address)];
    return memory.op == Op::Scratch ? -1 : memory.imm;
  }
  bool knows_memory() const {
    for (LinearId i = begin_; i < end_; ++i) {
      if (ops_[i].op != Op::Load && ops_[i].op != Op::Store) continue;
      const Op memory = ops_[memory_of(ops_[i].src[0])].op;
      if (memory != Op::Param && memory != Op::Scratch) return false;
    }
    return true;
  }

  void before(LinearId first, LinearId second) { edges_.emplace_back(second, first); }

  // What must come before what: sources; loads and stores of one place, reads and settings of one
  // accumulator, as they stand.
  void find_order() {
    struct Known {
      std::vector<LinearId> reads;  // since it was written
      LinearId written = std::numeric_limits<LinearId>::max();
    };
    std::unordered_map<int64_t, Known> places, accumulators;
    const auto use = [&](Known& known, LinearId i, bool writes) {
      if (known.written != std::numeric_limits<LinearId>::max()) before(known.written, i);
      if (writes) {
        for (const LinearId r : known.reads)
          if (r != i) before(r, i);
        known.reads.clear();
        known.written = i;
      } else {
        known.reads.push_back(i);
      }
    };
    for (LinearId i = begin_; i < end_; ++i) {
      const LinearOp& op = ops_[i];
      look_often(stop_, i);
      first_edge_.push_back(edges_.size());
      for (size_t s = 0; s < op.count; ++s) {
        if (is_inside(op.src[s])) before(op.src[s], i);
        if (ops_[op.src[s]].op == Op::Accumulator && !(op.op == Op::Set && s == 0))
          use(accumulators[op.src[s]], i, false);
      }
      if (op.op == Op::Set) use(accumulators[op.src[0]], i, true);
      if (op.op == Op::Load || op.op == Op::Store) {
        stored_.resize(std::max(stored_.size(), static_cast<size_t>(place_of(op.src[0]) + 2)));
        if (op.op == Op::Store) stored_[static_cast<size_t>(place_of(op.src[0]) + 1)] = 1;
        use(places[place_of(op.src[0])], i, op.op == Op::Store);
      }
    }
    first_edge_.push_back(edges_.size());
  }

  std::span<const std::pair<LinearId, LinearId>> edges_of(LinearId i) const {
    return std::span(edges_).subspan(first_edge_[at(i)],
                                     first_edge_[at(i) + 1] - first_edge_[at(i)]);
  }

  // How far each op is from the piece's beginning; what waits for nothing is not made long before
  // it is wanted.
  void set_levels() {
    for (LinearId i = begin_; i < end_; ++i) {
      int level = 0;
      for (const auto& [op, first] : edges_of(i)) level = std::max(level, level_[at(first)] + 1);
      level_[at(i)] = level;
    }
    std::vector<int> wanted(level_.size(), std::numeric_limits<int>::max());
    for (LinearId i = end_; i-- > begin_;) {
      const LinearOp& op = ops_[i];
      bool moves = kept_in(op) == Kept::Integer || op.op == Op::Broadcast || op.op == Op::Load;
      if (op.op == Op::Load) moves = !stored_[static_cast<size_t>(place_of(op.src[0]) + 1)];
      for (size_t s = 0; s < op.count; ++s) moves = moves && ops_[op.src[s]].op != Op::Accumulator;
      look_often(stop_, i);
      const int soonest = wanted[at(i)];
      if (moves && soonest != std::numeric_limits<int>::max())
        level_[at(i)] = std::max(level_[at(i)], soonest - 1);
      for (const auto& [user, first] : edges_of(i))
        wanted[at(first)] = std::min(wanted[at(first)], level_[at(i)]);
    }
  }

  // A group: what stores, sets or gives to others, with all that only it and later ones need.
  // Groups with a long chain count; what has none goes with the group before.
  void find_groups(int chain_min) {
    std::ranges::fill(group_, kNone);
    std::vector<uint8_t> is_read(group_.size());
    for (const auto& [user, first] : edges_) is_read[at(first)] |= ops_[first].dtype != kVoid;
    std::vector<int> length(group_.size());
    std::vector<LinearId> pending;
    bool is_counted = false;
    for (LinearId i = begin_; i < end_; ++i) {
      if (is_read[at(i)] || group_[at(i)] != kNone) continue;
      std::vector<LinearId> members;
      pending.push_back(i);
      while (!pending.empty()) {
        const LinearId member = pending.back();
        pending.pop_back();
        if (group_[at(member)] != kNone) continue;
        group_[at(member)] = 0;
        members.push_back(member);
        for (const auto& [user, first] : edges_of(member)) pending.push_back(first);
      }
      std::ranges::sort(members);
      int longest = 0;
      for (const LinearId m : members) {
        if (ops_[m].dtype.lanes == 1 || !has(ops_[m].op, kElementwise)) continue;
        int& own = length[at(m)] = 1;
        for (const auto& [user, first] : edges_of(m)) own = std::max(own, length[at(first)] + 1);
        longest = std::max(longest, own);
      }
      if (longest >= chain_min && is_counted) ++groups_;
      is_counted |= longest >= chain_min;
      for (const LinearId m : members) group_[at(m)] = groups_;
    }
    ++groups_;
  }

  size_t window_of(LinearId i, size_t width) const { return group_[at(i)] / width; }

  // Windows one after the other, of so many groups each, ops by level.
  Order windowed(size_t width) const {
    std::vector<size_t> next(groups_ / width + 2);  // by window: where its next op goes
    for (const size_t g : group_) ++next[g / width + 1];
    std::partial_sum(next.begin(), next.end(), next.begin());
    Order order;
    order.ops.resize(by_level_.size());
    for (const LinearId i : by_level_) order.ops[next[window_of(i, width)]++] = i;
    return order;
  }

  // Registers by number: what ops inside make, then what comes from outside.
  size_t register_of(LinearId source) {
    if (is_inside(source)) return at(source);
    const auto [place, is_new] = outside_.try_emplace(source, level_.size() + outside_.size());
    return place->second;
  }
  void find_registers() {
    const size_t inside = level_.size();
    for (LinearId i = begin_; i < end_; ++i) {
      std::array<size_t, 4>& reads = reads_.emplace_back();
      reads.fill(kNone);
      size_t count = 0;
      for (size_t s = 0; s < ops_[i].count; ++s) {
        const LinearOp& source = ops_[ops_[i].src[s]];
        has_constants_ |= source.op == Op::Const && source.dtype.lanes > 1;
        if (kept_in(source) != Kept::Nowhere) reads[count++] = register_of(ops_[i].src[s]);
      }
    }
    registers_.assign(inside + outside_.size(), {});
    for (LinearId i = begin_; i < end_; ++i)
      registers_[at(i)] = {kept_in(ops_[i]), last_use_[i] >= end_, i};
    for (const auto& [value, number] : outside_)
      registers_[number] = {kept_in(ops_[value]), last_use_[value] >= end_, value};
    for (LinearId i = 0; i < begin_; ++i)
      if (last_use_[i] >= begin_) ++live_before_[static_cast<size_t>(kept_in(ops_[i]))];
    if (has_constants_) live_before_[static_cast<size_t>(Kept::Vector)] += kConstantRegisters;
  }

  // What comes in a register and is read in one window alone, not the first.
  void park(Order& order, size_t width) const {
    std::vector<size_t> window(registers_.size(), kNone);
    for (LinearId i = begin_; i < end_; ++i)
      for (const size_t r : reads_[at(i)]) {
        if (r == kNone || r < level_.size()) continue;
        const bool stays = ops_[i].op == Op::Set || registers_[r].stays ||
                           registers_[r].kept != Kept::Vector ||
                           (window[r] != kNone && window[r] != window_of(i, width));
        window[r] = stays ? 0 : window_of(i, width);
      }
    for (size_t r = level_.size(); r < registers_.size(); ++r)
      if (window[r] != kNone && window[r] > 0) order.parked.push_back(registers_[r].value);
    std::ranges::sort(order.parked);
  }

  bool fits_registers(const Order& order) const {
    std::array<int64_t, kKinds> live = live_before_;
    std::vector<size_t> last(registers_.size(), kNone);  // where the order reads it last
    for (size_t i = 0; i < order.ops.size(); ++i)
      for (const size_t r : reads_[at(order.ops[i])])
        if (r != kNone) last[r] = registers_[r].stays ? kNone : i;
    for (const LinearId value : order.parked) last[outside_.at(value)] = kNone;
    live[static_cast<size_t>(Kept::Vector)] -= static_cast<int64_t>(order.parked.size());
    const int64_t vectors_max = target_.vector_registers + target_.vector_registers / kSpilledShare;
    for (size_t i = 0; i < order.ops.size(); ++i) {
      look_often(stop_, i);
      const size_t own = at(order.ops[i]);
      for (const size_t r : reads_[own])
        if (r != kNone && last[r] == i) {
          --live[static_cast<size_t>(registers_[r].kept)];
          last[r] = kNone;
        }
      ++live[static_cast<size_t>(registers_[own].kept)];
      if (live[static_cast<size_t>(Kept::Vector)] > vectors_max) return false;
      if (live[static_cast<size_t>(Kept::Integer)] > kIntegerRegisters) return false;
    }
    return true;
  }

  const std::vector<LinearOp>& ops_;
  const StopSignal* stop_;
  const Target& target_;
  std::span<const LinearId> last_use_;
  const LinearId begin_, end_;
  std::vector<int> level_;
  std::vector<size_t> group_;
  size_t groups_ = 0;
  std::vector<std::pair<LinearId, LinearId>> edges_;  // an op, and what comes before it; by op
  std::vector<size_t> first_edge_;
  std::vector<uint8_t> stored_;  // by place + 1: whether the piece stores there
  std::vector<LinearId> by_level_;
  struct Register {
    Kept kept = Kept::Nowhere;
    bool stays = false;  // is wanted after the piece
    LinearId value = 0;
  };
  std::vector<Register> registers_;
  std::unordered_map<LinearId, size_t> outside_;
  std::vector<std::array<size_t, 4>> reads_;  // of each op, by register
  std::array<int64_t, kKinds> live_before_{};
  bool has_constants_ = false;
};

// The program in another order, with what is parked.
class Rewriter {
 public:
  explicit Rewriter(LinearProgram& program) : program_(program), place_(program.ops.size()) {}

  void keep(LinearId i) {
    LinearOp op = program_.ops[i];
    for (size_t s = 0; s < op.count; ++s) {
      const auto parked = parked_.find(op.src[s]);
      op.src[s] = parked == parked_.end() ? place_[op.src[s]] : loaded(parked->second);
    }
    place_[i] = add(op);
  }
  void place(const Piece::Order& order) {
    int64_t offset = round_up(program_.scratch_bytes, kParkedAlignment);
    for (const LinearId value : order.parked) {
      const DType type = program_.ops[value].dtype;
      Parked& parked = parked_[value];
      parked.scratch = add({Op::Scratch, kAddress, 0, {}, offset});
      parked.zero = add({Op::Const, kInt64});
      parked.type = type;
      add({Op::Store, kVoid, 3, {parked.scratch, parked.zero, place_[value]}, 0, 1});
      offset = round_up(offset + type.bytes() * type.lanes, kParkedAlignment);
    }
    scratch_ = std::max(scratch_, offset);
    for (const LinearId i : order.ops) keep(i);
    parked_.clear();
  }
  void finish() {
    program_.ops = std::move(out_);
    program_.scratch_bytes = std::max(program_.scratch_bytes, scratch_);
  }

 private:
  struct Parked {
    LinearId scratch = 0;
    LinearId zero = 0;
    DType type;
    LinearId value = 0;  // once it is back
  };
  LinearId add(const LinearOp& op) {
    out_.push_back(op);
    return static_cast<LinearId>(out_.size() - 1);
  }
  LinearId loaded(Parked& parked) {
    if (parked.value == 0)
      parked.value = add({Op::Load, parked.type, 2, {parked.scratch, parked.zero}, 0, 1});
    return parked.value;
  }

  LinearProgram& program_;
  std::vector<LinearId> place_;
  std::vector<LinearOp> out_;
  std::unordered_map<LinearId, Parked> parked_;
  int64_t scratch_ = 0;
};

}  // namespace

void interleave(LinearProgram& program, const Target& target, int chain_min) {
  const std::vector<LinearOp>& ops = program.ops;
  const std::vector<LinearId> last_use = last_uses(ops);
  Rewriter rewriter(program);
  bool changed = false;
  LinearId begin = 0;
  for (LinearId i = 0; i <= ops.size(); ++i) {
    if (i < ops.size() && !ends_piece(ops[i].op)) continue;
    Piece::Order order;
    if (i > begin) order = Piece(program, target, last_use, begin, i).arrange(chain_min);
    changed |= !order.ops.empty();
    if (order.ops.empty())
      for (LinearId k = begin; k < i; ++k) rewriter.keep(k);
    else
      rewriter.place(order);
    if (i < ops.size()) rewriter.keep(i);
    begin = i + 1;
  }
  if (changed) rewriter.finish();
}

}  // namespace tiny
