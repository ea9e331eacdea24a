#include "codegen/linear/interleave.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <numeric>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/look_often.h"
#include "base/sort.h"
#include "codegen/linear/register_count.h"

namespace tiny {

namespace {

// Chains side by side where all do not fit: so many hide the latency of each other's steps (four
// cycles on two units); fewer than the last gain nothing.
constexpr size_t kWindows[] = {8, 6, 5, 4, 3};
constexpr int64_t kParkedAlignment = 64;

bool ends_piece(Op op) {
  return op == Op::Loop || op == Op::EndLoop || op == Op::If || op == Op::EndIf ||
         op == Op::Check || op == Op::Accumulator;
}

// A step of a chain: vector arithmetic, or elements that are looked up at places which it makes.
bool is_step(const std::vector<LinearOp>& ops, const LinearOp& op) {
  if (op.dtype.lanes == 1) return false;
  return has(op.op, kElementwise) || (op.op == Op::Load && ops[op.src[1]].dtype.lanes > 1);
}

constexpr size_t kNone = std::numeric_limits<size_t>::max();

// Ops without loops, ifs and checks among them, from `begin` to before `end`.
class Piece {
 public:
  Piece(const LinearProgram& program, LinearId begin, LinearId end)
      : program_(program),
        ops_(program.ops),
        begin_(begin),
        end_(end),
        level_(end - begin),
        group_(end - begin) {}

  // No ops: it stays as it is.
  PieceOrder arrange(int chain_min, const Target& target, std::span<const LinearId> last_use) {
    if (longest_chain() < chain_min || !knows_memory()) return {};
    find_order();
    set_levels();
    find_groups(chain_min);
    by_level_.resize(level_.size());
    std::iota(by_level_.begin(), by_level_.end(), begin_);
    sort_stable(by_level_, {}, [&](LinearId i) { return level_[at(i)]; });
    const RegisterCount registers(program_, last_use, begin_, end_);
    PieceOrder order = windowed(groups_);
    if (registers.fits(order, target)) return order;
    for (const size_t width : kWindows) {
      if (width >= groups_) continue;
      order = windowed(width);
      if (registers.fits(order, target)) return order;
      order.parked = registers.read_late([&](LinearId i) { return window_of(i, width); });
      if (!order.parked.empty() && registers.fits(order, target)) return order;
    }
    return {};
  }

 private:
  bool is_inside(LinearId id) const { return id >= begin_ && id < end_; }
  size_t at(LinearId id) const { return id - begin_; }

  // Sums over accumulators are no chains, since each is set before it is read.
  int longest_chain() {
    int longest = 0;
    for (LinearId i = begin_; i < end_; ++i) {
      const LinearOp& op = ops_[i];
      int& length = level_[at(i)] = 0;
      if (!is_step(ops_, op)) continue;
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
  // those that it writes, or is read where it is written and there alone (engine/reuse.h).  So no
  // load minds a store of another place going after it, and minds one going before it only at its
  // own index.
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

  // What must come before what: sources; loads and stores of one place, and loads before the stores
  // at their index, reads and settings of one accumulator, as they stand.
  void find_order() {
    struct Known {
      std::vector<LinearId> reads;  // since it was written
      LinearId written = std::numeric_limits<LinearId>::max();
    };
    std::unordered_map<int64_t, Known> places, accumulators;
    std::map<std::pair<LinearId, int64_t>, std::vector<LinearId>> loads;  // by index and offset
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
      look_often(program_.stop, i);
      first_edge_.push_back(edges_.size());
      for (size_t s = 0; s < op.count; ++s) {
        if (is_inside(op.src[s])) before(op.src[s], i);
        if (ops_[op.src[s]].op == Op::Accumulator && !(op.op == Op::Set && s == 0))
          use(accumulators[op.src[s]], i, false);
      }
      if (op.op == Op::Set) use(accumulators[op.src[0]], i, true);
      if (op.op == Op::Load || op.op == Op::Store) {
        const int64_t place = place_of(op.src[0]);
        const bool stores = op.op == Op::Store;
        stored_.resize(std::max(stored_.size(), static_cast<size_t>(place + 2)));
        if (stores) stored_[static_cast<size_t>(place + 1)] = 1;
        use(places[place], i, stores);
        if (place < 0) continue;
        std::vector<LinearId>& here = loads[{op.src[1], op.imm}];
        if (!stores) here.push_back(i);
        for (size_t k = 0; stores && k < here.size(); ++k) before(here[k], i);
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
      look_often(program_.stop, i);
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
        if (!is_step(ops_, ops_[m])) continue;
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
  PieceOrder windowed(size_t width) const {
    std::vector<size_t> next(groups_ / width + 2);  // by window: where its next op goes
    for (const size_t g : group_) ++next[g / width + 1];
    std::partial_sum(next.begin(), next.end(), next.begin());
    PieceOrder order;
    order.ops.resize(by_level_.size());
    for (const LinearId i : by_level_) order.ops[next[window_of(i, width)]++] = i;
    return order;
  }

  const LinearProgram& program_;
  const std::vector<LinearOp>& ops_;
  const LinearId begin_, end_;
  std::vector<int> level_;
  std::vector<size_t> group_;
  size_t groups_ = 0;
  std::vector<std::pair<LinearId, LinearId>> edges_;  // an op, and what comes before it; by op
  std::vector<size_t> first_edge_;
  std::vector<uint8_t> stored_;  // by place + 1: whether the piece stores there
  std::vector<LinearId> by_level_;
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
  void place(const PieceOrder& order) {
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

// Whether any piece has so long a chain, as Piece::longest_chain counts it:
// most programs have none, and are not looked at further.
bool has_chain_of(const std::vector<LinearOp>& ops, int chain_min) {
  std::vector<int> length(ops.size());
  LinearId begin = 0;
  for (LinearId i = 0; i < ops.size(); ++i) {
    const LinearOp& op = ops[i];
    if (ends_piece(op.op)) begin = i + 1;
    if (begin > i || !is_step(ops, op)) continue;
    for (size_t s = 0; s < op.count; ++s)
      if (op.src[s] >= begin) length[i] = std::max(length[i], length[op.src[s]]);
    if (++length[i] >= chain_min) return true;
  }
  return false;
}

}  // namespace

void interleave(LinearProgram& program, const Target& target, int chain_min) {
  const std::vector<LinearOp>& ops = program.ops;
  if (!has_chain_of(ops, chain_min)) return;
  const std::vector<LinearId> last_use = last_uses(ops);
  Rewriter rewriter(program);
  bool changed = false;
  LinearId begin = 0;
  for (LinearId i = 0; i <= ops.size(); ++i) {
    if (i < ops.size() && !ends_piece(ops[i].op)) continue;
    PieceOrder order;
    if (i > begin) order = Piece(program, begin, i).arrange(chain_min, target, last_use);
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
