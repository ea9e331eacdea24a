#include "ir/shared_value.h"

#include <algorithm>
#include <bit>
#include <unordered_set>

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

class Finder {
 public:
  Finder(const Kernel& kernel, size_t place)
      : kernel_(kernel), place_(place), order_(topological(kernel.roots)) {
    add_free_ranges(kernel, kernel.roots, free_);
  }

  std::optional<SharedValue> run(double work_min) {
    std::optional<SharedValue> best;
    for (const UOp& reduce : order_) {
      if (reduce.op() != Op::Reduce) continue;
      const RangeSet home = closed_by(reduce);
      if (inside(home) != home) continue;
      for (const UOp& closer : order_)
        if ((closer.op() == Op::Reduce || closer.op() == Op::Store) && !(closer == reduce))
          compare(reduce, home, closer, best ? best->work : work_min, best);
    }
    return best;
  }

 private:
  RangeSet inside(RangeSet set) const { return set >> place_ << place_; }

  RangeSet closed_by(const UOp& closer) const {
    if (closer.op() == Op::Store) return free_.at(closer.node());
    RangeSet own = 0;
    for (size_t k = 1; k < closer.src().size(); ++k)
      own |= RangeSet{1} << kernel_.position(closer.src(k));
    return own;
  }

  // The ranges of `closer` inside the place, each with the one of `home` that it becomes; nothing
  // if they are not alike.
  std::vector<std::pair<UOp, UOp>> renaming(const UOp& closer, RangeSet home) const {
    const std::vector<size_t> from = positions(inside(closed_by(closer)));
    const std::vector<size_t> to = positions(home);
    std::vector<std::pair<UOp, UOp>> out;
    if (from.size() != to.size() || from == to) return out;
    for (size_t i = 0; i < from.size(); ++i) {
      const KernelRange& a = kernel_.ranges[from[i]];
      const KernelRange& b = kernel_.ranges[to[i]];
      if (!(a.range.src(0) == b.range.src(0)) || a.kind != b.kind) return {};
      out.emplace_back(a.range, b.range);
    }
    return out;
  }

  // What of `reduce`'s value `closer` wants too, with more than `work`.
  void compare(const UOp& reduce, RangeSet home, const UOp& closer, double work,
               std::optional<SharedValue>& best) const {
    const auto to_home = renaming(closer, home);
    if (to_home.empty()) return;
    const UOp image = substitute(closer.src(closer.op() == Op::Store ? 1 : 0), to_home);
    // What a reduction or a stage below closes is not wanted here.
    std::unordered_set<const Node*> wanted;
    const std::vector<UOp> below = topological({&image, 1}, closes);
    for (const UOp& u : below) wanted.insert(u.node());
    const UOp value = reduce.src(0);
    for (const UOp& u : topological({&value, 1}, closes)) {
      if (!has(u.op(), kElementwise) || inside(free_.at(u.node())) != home) continue;
      if (!wanted.contains(u.node())) continue;
      const double takes = work_of(u, home);
      if (takes < work || (best && takes <= best->work)) continue;
      best = SharedValue{u, std::find(order_.begin(), order_.end(), u) - order_.begin(), takes,
                         elements(free_.at(u.node()))};
    }
  }

  double work_of(const UOp& value, RangeSet ranges) const {
    const auto stop = [](const UOp& u) { return u.op() == Op::Load || closes(u); };
    double sum = 0;
    for (const UOp& u : topological({&value, 1}, stop))
      if (has(u.op(), kElementwise) && (free_.at(u.node()) & ranges) && u.dtype() != kInt64)
        sum += op_weight(u.op());
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
};

}  // namespace

namespace {

// Inside of which everything that closes ranges lies.
RangeSet common_ranges(const Kernel& kernel) {
  FreeRanges free;
  add_free_ranges(kernel, kernel.roots, free);
  RangeSet common = ~RangeSet{0};
  for (const UOp& u : topological(kernel.roots))
    if (u.op() == Op::Reduce || u.op() == Op::Store) common &= free.at(u.node());
  return common;
}

}  // namespace

size_t common_outer_ranges(const Kernel& kernel) {
  const auto count = static_cast<size_t>(std::countr_one(common_ranges(kernel)));
  return std::min(count, kernel.ranges.size());
}

void put_rows_outermost(Kernel& kernel) {
  constexpr size_t kRangesMax = 64;
  if (kernel.ranges.size() > kRangesMax) return;
  const RangeSet common = common_ranges(kernel);
  std::vector<KernelRange> rows;
  std::vector<KernelRange> others;
  for (size_t i = 0; i < kernel.ranges.size(); ++i)
    (common & (RangeSet{1} << i) ? rows : others).push_back(kernel.ranges[i]);
  rows.insert(rows.end(), others.begin(), others.end());
  kernel.ranges = std::move(rows);
}

std::optional<SharedValue> find_shared_value(const Kernel& kernel, size_t place, double work_min) {
  return Finder(kernel, place).run(work_min);
}

}  // namespace tiny
