#include "rules/split_ranges.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "ir/build.h"
#include "rules/symbolic.h"

namespace tiny {

namespace {

// A kernel's indices divide by a few numbers at the most.
constexpr int kSplitsMax = 16;
constexpr int64_t kTurnsMax = 8;  // of values that take turns from any place on

// A range that is to be an outer one of so many turns and an inner one of so many steps.
struct Split {
  UOp range;
  UOp turns;
  int64_t steps = 0;
};

std::optional<Split> find_exact_divisor(const Kernel& kernel) {
  const std::vector<UOp> order = topological(kernel.roots);
  IndexSimplifier simplify;
  for (const UOp& u : order) {
    const auto divided = divided_range(u);
    if (!divided || runs_along(order, divided->range)) continue;
    const UOp& size = divided->range.src(0);
    if (!simplify(floor_mod(size, divided->divisor)).is_const_int(0)) continue;
    return Split{divided->range, simplify(floor_div(size, divided->divisor)), divided->divisor};
  }
  return std::nullopt;
}

void split(Kernel& kernel, const Split& found) {
  const auto& [range, turns, steps] = found;
  Graph& graph = range.graph();
  const UOp outer = graph.make(Op::Range, {turns}, range.int_arg());
  const UOp inner = graph.make(Op::Range, {graph.integer(steps)}, kernel.next_range_number());
  const UOp sum = add(mul(outer, steps), inner);
  const auto at = static_cast<int64_t>(kernel.position(range));
  map_kernel(kernel, [&](const UOp& u, std::vector<UOp>& src) {
    if (u == range) return sum;
    if (u.op() == Op::Reduce)
      if (const auto closed = std::find(src.begin() + 1, src.end(), sum); closed != src.end()) {
        *closed = inner;
        src.insert(closed, outer);
      }
    return u.with_src(src);
  });
  const auto place = kernel.ranges.begin() + at;
  KernelRange second = *place;
  place->range = outer;
  second.range = inner;
  kernel.ranges.insert(place + 1, second);
}

}  // namespace

std::optional<DividedRange> divided_range(const UOp& u) {
  if ((u.op() != Op::FloorDiv && u.op() != Op::FloorMod) || !u.src(1).is_const())
    return std::nullopt;
  const int64_t c = u.src(1).const_int();
  const bool has_offset = u.src(0).op() == Op::Add && u.src(0).src(1).is_const();
  const UOp& r = has_offset ? u.src(0).src(0) : u.src(0);
  if (r.op() != Op::Range || c < 2 || (has_offset && c > kTurnsMax)) return std::nullopt;
  if (r.src(0).is_const() && r.src(0).const_int() <= c) return std::nullopt;
  return DividedRange{r, c};
}

Kernel split_at_exact_divisors(const Kernel& kernel) {
  Kernel out = kernel;
  for (int splits = 0; splits < kSplitsMax; ++splits) {
    const auto found = find_exact_divisor(out);
    if (!found) break;
    split(out, *found);
    simplify_indices(out);
  }
  return out;
}

void simplify_indices(Kernel& kernel) {
  IndexSimplifier simplify;
  map_kernel(kernel, [&](const UOp& u, std::vector<UOp>& src) {
    const bool index = u.dtype() == kInt64 && has(u.op(), kElementwise);
    // The kernel lists its ranges as they are, sizes and all.
    const UOp next = u.op() == Op::Range ? u : u.with_src(src);
    return index ? simplify(next) : next;
  });
}

}  // namespace tiny
