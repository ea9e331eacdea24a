#include "schedule/join_beside.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "base/sort.h"
#include "ir/bounds.h"
#include "schedule/kernel_figures.h"
#include "schedule/kernel_memory.h"
#include "schedule/kernel_order.h"
#include "schedule/lower.h"
#include "shape/shape.h"
#include "shape/view.h"

namespace tiny {

namespace {

bool has_checks(const ScheduledKernel& kernel) {
  return kernel.kernel.roots.size() != kernel.stores.size();
}

// The ranges of a store in the order in which its elements lie, the innermost last.
std::vector<UOp> ranges_by_stride(const UOp& store) {
  const ViewArg& view = store.view_arg();
  std::vector<std::pair<int64_t, UOp>> found;
  for (size_t i = 0; i < view.strides.size(); ++i)
    if (store.src(2 + i).op() == Op::Range) found.emplace_back(view.strides[i], store.src(2 + i));
  sort_stable(found, std::greater<>(), [](const auto& f) { return f.first; });
  std::vector<UOp> ranges;
  for (const auto& [stride, range] : found) ranges.push_back(range);
  return ranges;
}

// Whether what is stored over the same ranges lies in the same order, which the loops keep.
bool lies_alike(const ScheduledKernel& joined, const ScheduledKernel& alone) {
  const Kernel& kernel = joined.kernel;
  const std::vector<UOp> largest = ranges_by_stride(kernel.roots.front());
  for (size_t i = 1; i < joined.stores.size(); ++i) {
    const std::vector<UOp> own = ranges_by_stride(kernel.roots[i]);
    if (own.size() == largest.size() && own != largest) return false;
  }
  // The loops of the largest store are in the order that they have without the others.
  for (size_t i = 0; i + 1 < alone.kernel.ranges.size(); ++i)
    if (!alone.kernel.ranges[i + 1].reduced && !joined.kernel.ranges[i].reduced &&
        !(alone.kernel.ranges[i].range.src(0) == joined.kernel.ranges[i].range.src(0)))
      return false;
  return true;
}

// Whether the axes of the largest values may be the same, or one kernel may compute what the
// other stores: known without lowering them.  Who reads a slice of what the other stores a slice
// of reads the buffer.
bool may_share_ranges(const ScheduledKernel& a, const ScheduledKernel& b) {
  const Shape& of_a = shape_of(a.stores.front().value);
  const Shape& of_b = shape_of(b.stores.front().value);
  for (const auto& [one, other] : {std::pair(&a, &b), std::pair(&b, &a)})
    for (const ScheduledKernel::Read& read : one->reads)
      for (const ScheduledStore& s : other->stores)
        if (read.base == s.value || read.base.op() == Op::After) return true;
  for (size_t i = 0; i < std::min(of_a.size(), of_b.size()); ++i)
    if (!(of_a[i] == of_b[i]) && !of_a[i].is(1) && !of_b[i].is(1)) return false;
  return true;
}

// Whether both use the same of these variables: else one may have to come before what computes one
// that the other uses.
bool use_alike(const ScheduledKernel& a, const ScheduledKernel& b,
               std::span<const ComputedVariable> computed) {
  return std::ranges::all_of(computed, [&](const ComputedVariable& c) {
    return std::ranges::count(a.kernel.variables, c.variable) ==
           std::ranges::count(b.kernel.variables, c.variable);
  });
}

class SideJoiner {
 public:
  SideJoiner(Schedule& schedule, const Decision& decision, std::span<const UOp> outputs,
             const Machine& machine, const JoinSettings& settings, const Joins& before)
      : schedule_(schedule),
        kernels_(schedule.kernels),
        decision_(decision),
        machine_(machine),
        settings_(settings),
        before_(before),
        by_memory_(kernels_, decision),
        order_(kernels_, decision, outputs),
        figures_(kernels_, machine),
        inlined_(kernels_.size()) {
    for (const auto& [key, copy] : decision.copies) copied_.insert(key.first);
  }

  void run() {
    for (size_t k = 0; k < kernels_.size(); ++k) {
      if (settings_.stop) settings_.stop->check();
      if (!can_join(kernels_[k])) continue;
      const std::vector<size_t> others = by_memory_.beside(k);
      if (std::ranges::none_of(others, [&](size_t other) { return try_join(other, k); }))
        by_memory_.note(k);
    }
    std::vector<ScheduledKernel> joined;
    for (const size_t k : order_.kept()) joined.push_back(std::move(kernels_[k]));
    schedule_.kernels = std::move(joined);
    std::erase_if(schedule_.stored, [&](const UOp& u) { return dropped_.contains(u.node()); });
  }

 private:
  bool can_join(const ScheduledKernel& kernel) const {
    if (has_checks(kernel) || kernel.kernel.ranges.empty() ||
        kernel.kernel.ranges.size() > kJoinedRangesMax || stores_by_index(kernel.kernel))
      return false;
    return std::ranges::none_of(
        kernel.stores, [&](const ScheduledStore& s) { return copied_.contains(s.value.node()); });
  }

  // What the kernels read of each other and the joined one need not: versions that one of them
  // stores whole, and values that nobody else reads.
  std::vector<UOp> inlined_of(size_t first, size_t second) const {
    std::vector<UOp> inlined = inlined_[first];
    inlined.insert(inlined.end(), inlined_[second].begin(), inlined_[second].end());
    for (const size_t writer : {first, second})
      for (const ScheduledStore& s : kernels_[writer].stores) {
        if (can_drop(s, first, second)) inlined.push_back(s.value);
        for (const size_t reader : {first, second})
          for (const ScheduledKernel::Read& read : kernels_[reader].reads)
            if (read.base.op() == Op::After && !has_memory(read.base) &&
                s.value == read.base.src(1) && is_row_major(s.view) && s.view.offset.is(0) &&
                product(shape_of(s.value)) == product(shape_of(read.base)))
              inlined.push_back(read.base);
      }
    return inlined;
  }

  // Whether only these two read the value, which then needs no buffer.
  bool can_drop(const ScheduledStore& store, size_t first, size_t second) const {
    const uint32_t id = store.value.id();
    if (id >= before_.inner.size() || !before_.inner[id]) return false;
    // A part of another, too, has a buffer.
    return store.value == store.destination && order_.read_only_by(store.value, first, second);
  }

  // Whether the second reads what has a buffer because it is not to be computed there.
  bool are_apart(const ScheduledKernel& first, const ScheduledKernel& second) const {
    return std::ranges::any_of(second.reads, [&](const ScheduledKernel::Read& read) {
      const bool apart = read.base.id() < before_.apart.size() && before_.apart[read.base.id()];
      return apart && std::ranges::find(first.stores, read.base, &ScheduledStore::value) !=
                          first.stores.end();
    });
  }

  bool try_join(size_t first, size_t second) {
    const ScheduledKernel& a = kernels_[first];
    const ScheduledKernel& b = kernels_[second];
    if (a.values.size() + b.values.size() > static_cast<size_t>(machine_.most.inputs)) return false;
    if (a.scan != b.scan || !use_alike(a, b, settings_.computed)) return false;
    if (!may_share_ranges(a, b) || are_apart(a, b)) return false;
    if (!figures_.may_share_loops(first, second)) return false;
    const auto place = order_.with_both_as_one(first, second);
    if (!place) return false;
    std::vector<UOp> inlined = inlined_of(first, second);
    std::vector<ScheduledStore> stores;
    const double shared = shared_bytes(a, b, decision_);
    if (place->kept > shared) return false;
    double traffic = access_seconds(shared, machine_);
    for (const ScheduledKernel* k : {&a, &b})
      for (const ScheduledStore& s : k->stores) {
        if (!can_drop(s, first, second))
          stores.push_back(s);
        else
          traffic += access_seconds(bytes_of(s.value), machine_);
      }
    std::optional<ScheduledKernel> joined = lower_together(stores, inlined, decision_);
    if (!joined || joined->kernel.ranges.size() > kJoinedRangesMax ||
        !reads_before_it_stores(*joined, decision_))
      return false;
    const bool is_a = joined->stores.front().value == a.stores.front().value;
    if (!lies_alike(*joined, is_a ? a : b)) return false;
    const KernelLoops loops(joined->kernel);
    const KernelFigures figures = figures_of(loops, joined->values.size(), machine_);
    if (!figures.can_share) return false;
    const KernelSeconds both = seconds_of(loops, machine_);
    const KernelSeconds& of_a = figures_.seconds(first);
    const KernelSeconds& of_b = figures_.seconds(second);
    JoinCost cost;
    cost[JoinPart::Launch] = machine_.launch_seconds;
    cost[JoinPart::Traffic] = traffic - (both.streams - of_a.streams - of_b.streams);
    cost[JoinPart::Recomputed] = both.work - of_a.work - of_b.work;
    const int64_t number = before_.count + static_cast<int64_t>(second);
    if (!decide_join({number, b.stores.front().value, cost, false}, settings_)) return false;
    for (const UOp& u : inlined) dropped_.insert(u.node());
    joined->scan = kernels_[first].scan;
    joined->segment = kernels_[first].segment;
    kernels_[first] = std::move(*joined);
    inlined_[first] = std::move(inlined);
    figures_.set(first, figures, both);
    by_memory_.note(first);
    order_.join(first, second, place->order);
    return true;
  }

  Schedule& schedule_;
  std::vector<ScheduledKernel>& kernels_;
  const Decision& decision_;
  const Machine& machine_;
  const JoinSettings& settings_;
  const Joins& before_;
  KernelsByMemory by_memory_;
  KernelOrder order_;
  KnownFigures figures_;
  std::vector<std::vector<UOp>> inlined_;    // by kernel
  std::unordered_set<const Node*> dropped_;  // values without a buffer now
  std::unordered_set<const Node*> copied_;   // values whose kernels read copies of versions
};

}  // namespace

void join_beside(Schedule& schedule, const Decision& decision, std::span<const UOp> outputs,
                 const Machine& machine, const JoinSettings& settings, const Joins& before) {
  if (schedule.kernels.size() > 1)
    SideJoiner(schedule, decision, outputs, machine, settings, before).run();
}

}  // namespace tiny
