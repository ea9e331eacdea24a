#include "schedule/join.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "ir/bounds.h"
#include "ir/shared_value.h"
#include "schedule/lower.h"
#include "schedule/schedule.h"
#include "shape/shape.h"
#include "shape/view.h"

namespace tiny {

namespace {

// Positions that a value is chosen by where the values may share work.
constexpr int64_t kChoicesMax = 8;

double elements_of(const UOp& node) {
  double n = 1;
  for (const Dim& d : shape_of(node))
    n *= static_cast<double>(std::max<int64_t>(upper_bound(d), 1));
  return n;
}

constexpr double kRowTileMin = 4;        // rows that go through a chain of products at once
constexpr double kStagesOfRows = 3;      // of a product's rows, kept at once
constexpr double kWorkWorthKeeping = 6;  // multiply-adds of a value, as the heuristic has it

bool is_reduce(const UOp& u) {
  return u.op() == Op::Reduce;
}

// Whether a value is one of a few, by its position: such values share what they are made of as long
// as nothing but elementwise work stands around them.
bool chooses_by_position(const UOp& u) {
  if (u.op() != Op::Where || u.src(0).op() != Op::Less || u.src(1).is_const()) return false;
  const UOp& position = u.src(0).src(0);
  if (position.dtype() != kInt64 || !u.src(0).src(1).is_const()) return false;
  const Interval range = bounds(position);
  return range.lo == 0 && range.hi < kChoicesMax && !u.src(2).is_const();
}

// Whether a kernel with several reductions can run as loops over rows: each row is read, reduced
// and written while it is in cache.
class RowTest {
 public:
  RowTest(const Kernel& kernel, const Target& target) : kernel_(kernel), target_(target) {
    for (const UOp& u : topological(kernel.roots)) {
      uint64_t free = u.op() == Op::Range ? uint64_t{1} << kernel.position(u) : 0;
      for (const UOp& s : u.src()) free |= free_.at(s.node());
      if (u.op() == Op::Reduce)
        for (size_t i = 1; i < u.src().size(); ++i) free &= ~free_.at(u.src(i).node());
      free_.emplace(u.node(), free);
      nodes_.push_back(u);
    }
  }

  // Arithmetic of one launch, in multiply-adds: what is inside a reduction counts for each of its
  // iterations.
  double work() const {
    double sum = 0;
    for (const UOp& u : nodes_)
      if (has(u.op(), kElementwise) && u.dtype() != kInt64)
        sum += op_weight(u.op()) * extent(free_.at(u.node()));
    return sum;
  }

  bool passes(size_t inputs) const {
    if (static_cast<int64_t>(inputs) > target_.inputs_max || ops() > target_.ops_max) return false;
    const auto reductions = std::count_if(nodes_.begin(), nodes_.end(),
                                          [](const UOp& u) { return u.op() == Op::Reduce; });
    if (reductions == 0) return true;
    if (std::any_of(nodes_.begin(), nodes_.end(), chooses_by_position)) return false;
    double rows = 1;
    for (const UOp& u : nodes_) {
      if (u.op() != Op::Reduce) continue;
      const uint64_t free = free_.at(u.node());
      // The ranges outside of a reduction are the kernel's outermost ones.
      if (free & (free + 1)) return false;
      if (reductions > 1 && is_contraction(u)) return false;
      rows = std::max(rows, extent(free));
      for (size_t i = 0; i < kernel_.ranges.size(); ++i)
        if ((free & (uint64_t{1} << i)) && kernel_.ranges[i].reduced) return false;
    }
    return fits(rows);
  }

  // Whether a kernel of products and of reductions of their rows can run as loops over tiles of
  // rows: what the tile has in common is kept in scratch (codegen/heuristic_row_tiles.cpp).
  bool passes_as_tiles(size_t inputs) const {
    if (static_cast<int64_t>(inputs) > target_.inputs_max || ops() > target_.ops_max) return false;
    uint64_t common = ~uint64_t{0};
    for (const UOp& u : nodes_)
      if (u.op() == Op::Reduce || u.op() == Op::Store) common &= free_.at(u.node());
    if (common == 0 || (common & (common + 1))) return false;
    // A product is what the kernel ends in, or is wanted again and so kept.
    std::unordered_set<const Node*> kept;
    for (const SharedValue& shared : find_shared_values(
             kernel_, static_cast<size_t>(std::countr_one(common)), kWorkWorthKeeping))
      for (const UOp& u : topological(shared.images, is_reduce)) kept.insert(u.node());
    uint64_t reduced = 0;
    for (size_t i = 0; i < kernel_.ranges.size(); ++i)
      if (kernel_.ranges[i].reduced) reduced |= uint64_t{1} << i;
    double widest = 0;
    for (const UOp& u : nodes_) {
      if (u.op() != Op::Reduce) continue;
      const uint64_t columns = free_.at(u.node()) & ~common;
      if (columns == 0) continue;
      if (!is_contraction(u) || ((columns & reduced) && !kept.contains(u.node()))) return false;
      widest = std::max(widest, extent(columns) * static_cast<double>(u.dtype().bytes()));
    }
    // Rows are worth a tile if a matrix is the same for all of them, and is read from a cache.  One
    // that is the same for all of the kernel wants panels for all, which the product alone has.
    uint64_t row = common;
    double operands = 0;
    for (const UOp& u : nodes_) {
      if (u.op() != Op::Load) continue;
      const uint64_t walks = walked(u);
      if ((walks & common) == common || std::popcount(walks & ~common) < 2) continue;
      if (!(walks & common)) return false;
      row &= ~walks;
      operands += extent(walks & ~common) * static_cast<double>(u.dtype().bytes());
    }
    return operands > 0 && row && extent(std::bit_floor(row)) >= kRowTileMin &&
           operands <= static_cast<double>(target_.l3_bytes) / 2 &&
           kRowTileMin * kStagesOfRows * widest <= static_cast<double>(target_.l2_bytes) / 2;
  }

  // Seconds that each worker adds if a reduction inside another, the same for every output, is
  // computed once before the loops; none if the kernel is not of that kind.
  std::optional<double> operand_seconds(size_t inputs) const {
    if (static_cast<int64_t>(inputs) > target_.inputs_max || ops() > target_.ops_max)
      return std::nullopt;
    std::vector<UOp> reductions;
    for (const UOp& u : nodes_)
      if (u.op() == Op::Reduce) reductions.push_back(u);
    if (reductions.size() != 2) return std::nullopt;
    if (std::any_of(nodes_.begin(), nodes_.end(), chooses_by_position)) return std::nullopt;
    const UOp& inner = reductions[0];
    const UOp& outer = reductions[1];
    const std::vector<UOp> below = topological({&outer, 1});
    if (std::find(below.begin(), below.end(), inner) == below.end()) return std::nullopt;
    const uint64_t free = free_.at(inner.node());
    uint64_t own = 0;
    for (size_t i = 1; i < outer.src().size(); ++i) own |= free_.at(outer.src(i).node());
    if (free == 0 || (free & ~own) != 0) return std::nullopt;
    const double bytes = extent(free) * static_cast<double>(inner.dtype().bytes());
    if (bytes > static_cast<double>(target_.l1_bytes) / 2) return std::nullopt;
    uint64_t all = free;
    for (size_t i = 1; i < inner.src().size(); ++i) all |= free_.at(inner.src(i).node());
    return extent(all) / target_.fma_rate * (1 - 1.0 / target_.cores);
  }

 private:
  int64_t ops() const {
    int64_t n = 0;
    for (const UOp& u : nodes_)
      if (has(u.op(), kElementwise) && u.dtype() != kInt64)
        n += has(u.op(), kTranscendental) ? 20 : 1;
    return n;
  }

  double extent(uint64_t set) const {
    double n = 1;
    for (; set; set &= set - 1) {
      const auto i = static_cast<size_t>(std::countr_zero(set));
      n *= static_cast<double>(std::max<int64_t>(bounds(kernel_.ranges[i].range.src(0)).hi, 1));
    }
    return n;
  }

  // The ranges along which a load moves through memory: a stride of 0 repeats.
  uint64_t walked(const UOp& load) const {
    const ViewArg& view = load.view_arg();
    uint64_t set = 0;
    for (size_t i = 0; i < view.strides.size(); ++i)
      if (view.strides[i] != 0) set |= free_.at(load.src(1 + i).node());
    return set;
  }

  // A reduction whose operands are read more than once: it wants register tiles of its own.
  bool is_contraction(const UOp& reduce) const {
    uint64_t all = free_.at(reduce.node());
    for (size_t i = 1; i < reduce.src().size(); ++i) all |= free_.at(reduce.src(i).node());
    double largest = 1;
    const UOp value = reduce.src(0);
    for (const UOp& u : topological({&value, 1}))
      if (u.op() == Op::Load) largest = std::max(largest, extent(walked(u) & all));
    return extent(all) > 1.5 * largest;
  }

  bool fits(double rows) const {
    double bytes = 0;
    double stored = 0;
    for (const UOp& u : nodes_) {
      if (u.op() == Op::Load) bytes += extent(walked(u)) * static_cast<double>(u.dtype().bytes());
      if (u.op() == Op::Store)
        stored += extent(free_.at(u.node())) * static_cast<double>(u.src(1).dtype().bytes());
    }
    if ((bytes + stored) / rows > static_cast<double>(target_.l2_bytes) / 2) return false;
    return rows >= target_.tiles_min || bytes + stored <= 64 * 1024;
  }

  const Kernel& kernel_;
  const Target& target_;
  std::vector<UOp> nodes_;
  std::unordered_map<const Node*, uint64_t> free_;
};

class Joiner {
 public:
  Joiner(Decision& decision, std::span<const UOp> outputs, const Target& target)
      : decision_(decision),
        target_(target),
        fixed_(decision.stored.size()),
        users_(decision.stored.size()),
        changes_(decision.stored.size()) {
    for (const UOp& u : decision.order) {
      if (has_memory(u)) continue;
      for (const UOp& s : u.src()) users_[s.id()].push_back(u);
      const bool writes = u.op() == Op::Assign || u.op() == Op::After;
      if (u.op() == Op::Contiguous || writes || u.op() == Op::Concat || decision.slice_of[u.id()])
        fixed_[u.id()] = 1;
    }
    for (const UOp& out : outputs) {
      UOp base = out;
      fixed_[base.id()] = 1;
      while (!decision.stored[base.id()] && has(base.op(), kMovement)) base = UOp(base.src(0));
      fixed_[base.id()] = 1;
    }
  }

  void run(const StopSignal* stop) {
    std::vector<UOp> candidates;
    for (const UOp& u : decision_.order)
      if (decision_.stored[u.id()] && !has_memory(u) && !fixed_[u.id()]) candidates.push_back(u);
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const UOp& a, const UOp& b) { return elements_of(a) > elements_of(b); });
    for (int round = 0; round < 8; ++round) {
      bool changed = false;
      for (const UOp& u : candidates) {
        if (stop) stop->check();
        if (decision_.stored[u.id()]) changed |= try_join(u);
      }
      if (!changed) return;
    }
  }

 private:
  // The stored values that would compute `u` if it had no buffer: at most two are looked for.
  std::vector<UOp> readers(const UOp& u) const {
    std::vector<UOp> found;
    std::unordered_set<const Node*> seen;
    std::vector<UOp> stack{u};
    while (!stack.empty() && found.size() < 2) {
      const UOp node = std::move(stack.back());
      stack.pop_back();
      for (const UOp& user : users_[node.id()]) {
        if (!seen.insert(user.node()).second) continue;
        if (decision_.stored[user.id()])
          found.push_back(user);
        else
          stack.push_back(user);
      }
    }
    return found;
  }

  // Arithmetic of the kernel of `root`, as it is now.
  double work_of(const UOp& root) {
    Work& known = work_[root.node()];
    if (known.changes == changes_[root.id()]) return known.work;
    const ScheduledKernel kernel = lower_value(root, decision_);
    known.changes = changes_[root.id()];
    known.work = kernel.kernel.ranges.size() <= 64 ? RowTest(kernel.kernel, target_).work() : 0;
    return known.work;
  }

  // Whether these very kernels were found not to join before; notes that they are being tried.
  bool was_tried(const UOp& u, const UOp& root) {
    const Tried now{root.node(), changes_[root.id()], changes_[u.id()]};
    Tried& last = tried_[u.node()];
    if (last == now) return true;
    last = now;
    return false;
  }

  // Whether the kernels of `root` and of `u`, which it reads, are too large for one: known without
  // lowering them.
  bool too_many_ops(const UOp& root, const UOp& u) const {
    int64_t ops = 0;
    std::unordered_set<const Node*> seen{root.node(), u.node()};
    std::vector<UOp> stack{root, u};
    while (!stack.empty() && ops <= target_.ops_max) {
      const UOp node = std::move(stack.back());
      stack.pop_back();
      if (has(node.op(), kElementwise) && node.dtype() != kInt64) ++ops;
      for (const UOp& s : node.src())
        if (!decision_.stored[s.id()] && seen.insert(s.node()).second) stack.push_back(s);
    }
    return ops > target_.ops_max;
  }

  // Whether the kernel of `root` chooses values by position, or reduces.
  struct Kind {
    bool chooses = false;
    bool reduces = false;
  };
  Kind kind_of(const UOp& root) const {
    Kind kind;
    std::unordered_set<const Node*> seen;
    std::vector<UOp> stack{root};
    while (!stack.empty()) {
      const UOp node = std::move(stack.back());
      stack.pop_back();
      kind.chooses |= is_choice(node);
      kind.reduces |= node.op() == Op::ReduceAxis && !(shape_of(node) == shape_of(node.src(0)));
      for (const UOp& s : node.src())
        if (!decision_.stored[s.id()] && seen.insert(s.node()).second) stack.push_back(s);
    }
    return kind;
  }

  // The same before lowering: one of two values, by the position along a short axis.
  static bool is_choice(const UOp& u) {
    if (u.op() != Op::Where || u.src(0).op() != Op::Less) return false;
    UOp position = u.src(0).src(0);
    while (position.op() == Op::Expand || position.op() == Op::Reshape)
      position = UOp(position.src(0));
    return position.op() == Op::Iota && upper_bound(shape_of(position)[0]) <= kChoicesMax;
  }

  // Seconds less for values of rows that are wanted again: they are computed once and kept in
  // scratch.
  double staging_saves(const Kernel& kernel) const {
    const size_t place = common_outer_ranges(kernel);
    if (place == 0) return 0;
    double sum = 0;
    for (const SharedValue& shared : find_shared_values(kernel, place, 1)) {
      const double bytes = shared.elements * static_cast<double>(shared.value.dtype().bytes());
      const double work = shared.work * shared.elements * static_cast<double>(shared.again);
      sum += std::max(work / target_.fma_rate - 2 * bytes / target_.l2_bandwidth, 0.0);
    }
    return sum;
  }

  bool try_join(const UOp& u) {
    const std::vector<UOp> into = readers(u);
    if (into.size() != 1 || into.front().op() == Op::Concat) return false;
    const UOp& root = into.front();
    if (was_tried(u, root) || too_many_ops(root, u)) return false;
    const Kind own = kind_of(u);
    if (own.chooses || (own.reduces && kind_of(root).chooses)) return false;
    const double apart = work_of(u) + work_of(root);
    decision_.stored[u.id()] = 0;
    const ScheduledKernel joined = lower_value(root, decision_);
    if (joined.kernel.ranges.size() <= 24) {
      const RowTest test(joined.kernel, target_);
      const double pay = (test.work() - apart) / target_.fma_rate - staging_saves(joined.kernel);
      const double bytes = elements_of(u) * static_cast<double>(u.dtype().bytes());
      const double save = saved_seconds(bytes, target_);
      const std::optional<double> fill = test.operand_seconds(joined.values.size());
      const size_t inputs = joined.values.size();
      if (((test.passes(inputs) || test.passes_as_tiles(inputs)) && pay <= save) ||
          (fill && pay + *fill <= save)) {
        ++changes_[root.id()];
        return true;
      }
    }
    decision_.stored[u.id()] = 1;
    return false;
  }

  Decision& decision_;
  const Target& target_;
  std::vector<uint8_t> fixed_;
  std::vector<std::vector<UOp>> users_;
  std::vector<int64_t> changes_;  // by id: values that were joined into its kernel
  struct Work {
    int64_t changes = -1;  // of the kernel, when the work was found
    double work = 0;
  };
  std::unordered_map<const Node*, Work> work_;
  struct Tried {
    const Node* root = nullptr;
    int64_t root_changes = 0;
    int64_t own_changes = 0;
    bool operator==(const Tried&) const = default;
  };
  std::unordered_map<const Node*, Tried> tried_;  // the last time, by the value to join
};

}  // namespace

void join_kernels(Decision& decision, std::span<const UOp> outputs, const Target& target,
                  const StopSignal* stop) {
  if (!decision.order.empty()) Joiner(decision, outputs, target).run(stop);
}

}  // namespace tiny
