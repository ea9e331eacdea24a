#include "ir/shared_value.h"

#include <algorithm>
#include <bit>
#include <span>
#include <unordered_set>
#include <utility>

#include "ir/bounds.h"

namespace tiny {

namespace {

std::vector<size_t> positions(RangeSet set) {
  std::vector<size_t> out;
  for (; set; set &= set - 1) out.push_back(static_cast<size_t>(std::countr_zero(set)));
  return out;
}

bool closes(const UOp& u) {
  return u.op() == Op::Reduce || u.op() == Op::Stage;
}

// Inside of which everything that closes ranges lies, but for what a stage holds.
RangeSet common_ranges(const Kernel& kernel, const FreeRanges& free) {
  RangeSet common = ~RangeSet{0};
  for (const UOp& u : topological(kernel.roots, is_stage))
    if (u.op() == Op::Reduce || u.op() == Op::Store) common &= free.at(u.node());
  return common;
}

RangeSet common_ranges(const Kernel& kernel) {
  FreeRanges free;
  add_free_ranges(kernel, kernel.roots, free);
  return common_ranges(kernel, free);
}

class Finder {
 public:
  Finder(const Kernel& kernel, size_t place)
      : kernel_(kernel), place_(place), order_(topological(kernel.roots)) {
    add_free_ranges(kernel, kernel.roots, free_);
    common_ = common_ranges(kernel, free_);
  }

  // The one that saves most.
  std::optional<SharedValue> best(double work_min) const {
    std::optional<SharedValue> best;
    for (const UOp& reduce : order_) {
      if (reduce.op() != Op::Reduce) continue;
      const RangeSet home = closed_by(reduce);
      if (inside(home) != home) continue;
      // No part of a value takes more work than the whole.
      if (work_of(reduce.src(0), home) < work_min) continue;
      std::vector<SharedValue> values = values_of(reduce, home);
      for (const UOp& closer : order_)
        if ((closer.op() == Op::Reduce || closer.op() == Op::Store) && !(closer == reduce))
          count_wanted(values, home, closer);
      std::erase_if(values, [&](SharedValue& value) {
        value.work = value.again == 0 ? 0 : work_of(value.value, home);
        return value.again == 0 || value.work < work_min;
      });
      for (const SharedValue& value : values)
        if (!best || saved(value) > saved(*best)) best = product_of(value, values);
    }
    return best;
  }

  // From now on the value takes no work, over whatever ranges.
  void keep(SharedValue& shared) {
    shared.images = {shared.value};
    const RangeSet home = inside(free_.at(shared.value.node()));
    for (const UOp& closer : order_) {
      if (closer.op() != Op::Reduce && closer.op() != Op::Store) continue;
      const Renaming to_home = renaming(closer, home);
      if (to_home.empty()) continue;
      const UOp value = value_of(closer);
      for (const UOp& u : topological({&value, 1}, closes))
        if (u.op() == shared.value.op() && substitute(u, to_home) == shared.value)
          shared.images.push_back(u);
    }
    for (const UOp& u : shared.images) kept_.insert(u.node());
  }

 private:
  // A product that the value is made of and that is wanted more often than it comes first: what is
  // left of the value is kept after it, while its product would be made again for the others.
  SharedValue product_of(const SharedValue& whole, std::span<const SharedValue> values) const {
    const auto has_reduction = [&](const UOp& value) {
      return std::ranges::any_of(body(value), [&](const UOp* u) {
        return u->op() == Op::Reduce && !kept_.contains(u->node());
      });
    };
    const SharedValue* found = &whole;
    for (const SharedValue& part : values) {
      if (part.again <= found->again || !has_reduction(part.value)) continue;
      const std::vector<const UOp*> parts = body(whole.value);
      if (std::ranges::any_of(parts, [&](const UOp* u) { return *u == part.value; })) found = &part;
    }
    return *found;
  }

  static double saved(const SharedValue& s) { return s.work * static_cast<double>(s.again); }

  static UOp value_of(const UOp& closer) { return closer.src(closer.op() == Op::Store ? 1 : 0); }

  // Ranges that everything is inside of are the same for every user, wherever they stand.
  RangeSet inside(RangeSet set) const { return (set >> place_ << place_) & ~common_; }

  RangeSet closed_by(const UOp& closer) const {
    if (closer.op() == Op::Store) return free_.at(closer.node());
    RangeSet own = 0;
    for (size_t k = 1; k < closer.src().size(); ++k)
      own |= RangeSet{1} << kernel_.position(closer.src(k));
    return own;
  }

  using Renaming = std::vector<std::pair<UOp, UOp>>;
  // The ranges of `closer` inside the place, each with the one of `home` that it becomes; nothing
  // if they are not alike.
  Renaming renaming(const UOp& closer, RangeSet home) const {
    const std::vector<size_t> from = positions(inside(closed_by(closer)));
    const std::vector<size_t> to = positions(home);
    Renaming out;
    if (from.size() != to.size() || from == to) return out;
    for (size_t i = 0; i < from.size(); ++i) {
      const KernelRange& a = kernel_.ranges[from[i]];
      const KernelRange& b = kernel_.ranges[to[i]];
      if (!(a.range.src(0) == b.range.src(0)) || a.kind != b.kind) return {};
      out.emplace_back(a.range, b.range);
    }
    return out;
  }

  // The nodes of a value down to loads, to what is kept, and to what closes ranges: the walk marks
  // them.
  std::vector<const UOp*> body(const UOp& value) const {
    const uint64_t visit = value.graph().next_visit();
    value.node()->visit = visit;
    std::vector<const UOp*> out{&value};
    for (size_t i = 0; i < out.size(); ++i) {
      const UOp& u = *out[i];
      if (u.op() == Op::Load || closes(u) || kept_.contains(u.node())) continue;
      for (const UOp& s : u.src())
        if (std::exchange(s.node()->visit, visit) != visit) out.push_back(&s);
    }
    return out;
  }

  // What the reduction computes over its own ranges alone, sources first: not yet known to be
  // wanted, nor with what work.
  std::vector<SharedValue> values_of(const UOp& reduce, RangeSet home) const {
    body(reduce.src(0));
    const uint64_t own = reduce.src(0).node()->visit;
    std::vector<SharedValue> values;
    for (size_t i = 0; i < order_.size(); ++i) {
      const UOp& u = order_[i];
      if (u.node()->visit != own || kept_.contains(u.node())) continue;
      if (!has(u.op(), kElementwise) && u.op() != Op::Reduce) continue;
      const RangeSet free = free_.at(u.node());
      if (inside(free) != home) continue;
      values.push_back({u, static_cast<int64_t>(i), 0, elements(free), 0, {}});
    }
    return values;
  }

  // Which of the values `closer` wants too.
  void count_wanted(std::vector<SharedValue>& values, RangeSet home, const UOp& closer) const {
    const Renaming to_home = renaming(closer, home);
    if (to_home.empty()) return;
    const UOp image = substitute(value_of(closer), to_home);
    // What a reduction or a stage below closes is not wanted here: a walk marks what it reaches.
    topological({&image, 1}, closes);
    for (SharedValue& shared : values)
      if (shared.value.node()->visit == image.node()->visit) ++shared.again;
  }

  // Multiply-adds for one element; a reduction's count for each of its steps.
  double work_of(const UOp& value, RangeSet ranges) const {
    double sum = 0;
    for (const UOp* node : body(value)) {
      const UOp& u = *node;
      if (!(free_.at(u.node()) & ranges) || kept_.contains(u.node())) continue;
      if (has(u.op(), kElementwise) && u.dtype() != kInt64) sum += op_weight(u.op());
      if (u.op() == Op::Reduce)
        sum += work_of(u.src(0), ranges | closed_by(u)) * elements(closed_by(u));
    }
    return sum;
  }

  double elements(RangeSet set) const {
    double n = 1;
    for (size_t i : positions(set))
      n *= static_cast<double>(std::max<int64_t>(bounds(kernel_.ranges[i].range.src(0)).hi, 1));
    return n;
  }

  const Kernel& kernel_;
  size_t place_;
  std::vector<UOp> order_;
  FreeRanges free_;
  RangeSet common_ = 0;
  std::unordered_set<const Node*> kept_;
};

}  // namespace

size_t common_outer_ranges(const Kernel& kernel) {
  const auto count = static_cast<size_t>(std::countr_one(common_ranges(kernel)));
  return std::min(count, kernel.ranges.size());
}

void put_rows_outermost(Kernel& kernel) {
  constexpr size_t kRangesMax = 64;
  if (kernel.ranges.size() > kRangesMax) return;
  // One store is inside of all ranges.
  const bool reduces = std::ranges::any_of(kernel.ranges, &KernelRange::reduced);
  if (!reduces && kernel.roots.size() == 1) return;
  const RangeSet common = common_ranges(kernel);
  std::vector<KernelRange> rows;
  std::vector<KernelRange> others;
  for (size_t i = 0; i < kernel.ranges.size(); ++i)
    (common & (RangeSet{1} << i) ? rows : others).push_back(kernel.ranges[i]);
  rows.insert(rows.end(), others.begin(), others.end());
  kernel.ranges = std::move(rows);
}

std::optional<SharedValue> find_shared_value(const Kernel& kernel, size_t place, double work_min) {
  return Finder(kernel, place).best(work_min);
}

std::vector<SharedValue> find_shared_values(const Kernel& kernel, size_t place, double work_min) {
  Finder finder(kernel, place);
  std::vector<SharedValue> all;
  while (auto found = finder.best(work_min)) {
    finder.keep(*found);
    all.push_back(std::move(*found));
  }
  return all;
}

}  // namespace tiny
