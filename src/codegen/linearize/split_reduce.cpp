#include "codegen/linearize/split_reduce.h"

#include <algorithm>
#include <bit>

#include "codegen/linear/partial_sums.h"
#include "ir/bounds.h"

namespace tiny {

namespace {

bool is_loop(const KernelRange& r) {
  return r.kind == RangeKind::Loop || r.kind == RangeKind::Thread;
}

// The loops of `reduce` that lie outside of a loop that it runs in.
std::vector<UOp> outer_loops(const Kernel& kernel, const UOp& reduce, RangeSet free) {
  size_t innermost = 0;
  for (size_t i = 0; i < kernel.ranges.size(); ++i)
    if ((free & (RangeSet{1} << i)) && is_loop(kernel.ranges[i])) innermost = i;
  std::vector<UOp> out;
  for (size_t i = 1; i < reduce.src().size(); ++i) {
    const size_t at = kernel.position(reduce.src(i));
    if (at < innermost && is_loop(kernel.ranges[at])) out.push_back(reduce.src(i));
  }
  return out;
}

// Whether a loop that is reduced lies outside of one that is not; mostly none does.
bool has_outer_loops(const Kernel& kernel) {
  bool is_reduced = false;
  for (const KernelRange& r : kernel.ranges) {
    if (is_loop(r) && !r.reduced && is_reduced) return true;
    is_reduced = is_reduced || (is_loop(r) && r.reduced);
  }
  return false;
}

// Whether a fact bounds one of the loops by another: the last trip of all is then not that of each.
bool bound_together(const Kernel& kernel, const std::vector<UOp>& loops) {
  for (const UOp& fact : kernel.facts) {
    const std::vector<UOp> below = topological({&fact, 1});
    const auto stands_in = [&below](const UOp& r) {
      return std::find(below.begin(), below.end(), r) != below.end();
    };
    if (std::count_if(loops.begin(), loops.end(), stands_in) > 1) return true;
  }
  return false;
}

// How many steps these ranges have together, at most.
double steps_of(std::span<const UOp> ranges) {
  double steps = 1;
  for (const UOp& r : ranges) steps *= static_cast<double>(bounds(r.src(0)).hi);
  return steps;
}

// So many short parts a destination may add up: a vector times a matrix reads its rows side by side
// for as long as that, since whole sums would read a few columns at a time.
constexpr double kPartsMax = 4096;

// Whether a float sum would have many short parts: what a destination holds is one accumulator.
bool has_many_parts(const UOp& reduce, std::span<const UOp> outer, std::span<const UOp> inner) {
  return reduce.dtype().is_float() && reduce.reduce_arg().op == Op::Add &&
         steps_of(outer) > kPartsMax && steps_of(inner) < static_cast<double>(kPartSteps) / 4;
}

// The indices of an access, whose first is source `first`, but for those of axes of one element.
std::vector<UOp> indices_of(const UOp& access, size_t first) {
  const Ints& shape = access.view_arg().shape;
  std::vector<UOp> indices;
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i] != 1) indices.emplace_back(access.src(first + i));
  return indices;
}

// A load of what is stored would see a partial sum if both are one buffer: one that the store
// updates, in whatever view, or one that it takes over (engine/reuse.h), at the place of the store
// but for axes of one element.
bool may_read_destination(const UOp& store, const UOp& value) {
  const std::vector<UOp> place = indices_of(store, 2);
  for (const UOp& u : topological({&value, 1}))
    if (u.op() == Op::Load &&
        (u.src(0).int_arg() == store.src(0).int_arg() || indices_of(u, 1) == place))
      return true;
  return false;
}

// What `part` adds to `value`, a sum of its multiple and of what does not depend on it: c * part of
// a + c * part; no node if `value` is no such sum.
UOp multiple_in(const UOp& value, const UOp& part) {
  if (value == part) return part;
  std::vector<UOp> src(value.src().begin(), value.src().end());
  size_t at = 0;
  for (size_t i = 0; i < src.size(); ++i)
    if (reaches(src[i], part)) at = i;
  for (size_t i = 0; i < src.size(); ++i)
    if (i != at && reaches(src[i], part)) return {};
  const Op op = value.op();
  const bool adds = op == Op::Add || (op == Op::Fma && at == 2);
  if (!adds && op != Op::Neg && op != Op::Mul && op != Op::Fma) return {};
  src[at] = multiple_in(src[at], part);
  if (!src[at] || adds) return src[at];
  if (op == Op::Fma) src.pop_back();
  return value.graph().make(op == Op::Neg ? Op::Neg : Op::Mul, std::move(src));
}

// The one reduction whose value, perhaps changed elementwise, `kernel` stores; no node if partial
// sums cannot stand in the destination.
struct StoredReduction {
  UOp reduce;
  UOp added;  // of SplitReduction, made of `reduce`
};

StoredReduction stored_reduction(const Kernel& kernel, const FreeRanges& free) {
  if (kernel.roots.size() != 1 || kernel.roots[0].op() != Op::Store) return {};
  const UOp store = kernel.roots[0];
  UOp reduce;
  for (const UOp& u : topological({&store, 1}, closes_ranges)) {
    if (u.op() == Op::Last) return {};
    if (u.op() != Op::Reduce) continue;
    if (reduce) return {};
    reduce = u;
  }
  const UOp& value = store.src(1);
  if (!reduce || free.at(reduce.node()) != free.at(store.node()) || reduce.dtype() != value.dtype())
    return {};
  if (!may_read_destination(store, value)) return {reduce, {}};
  // What stood there before (a residual, weights that a step updates) is read by the first trip.
  const UOp added = reduce.reduce_arg().op == Op::Add ? multiple_in(value, reduce) : UOp();
  return added && !may_read_destination(store, added) ? StoredReduction{reduce, added}
                                                      : StoredReduction();
}

}  // namespace

bool can_add_into_destination(const Kernel& kernel) {
  FreeRanges free;
  add_free_ranges(kernel, kernel.roots, free);
  return static_cast<bool>(stored_reduction(kernel, free).reduce);
}

SplitReduction split_outer_reduction(const Kernel& kernel) {
  SplitReduction out{kernel, {}, {}};
  if (!has_outer_loops(kernel)) return out;
  FreeRanges free;
  add_free_ranges(kernel, kernel.roots, free);
  const auto [reduce, added] = stored_reduction(kernel, free);
  if (!reduce || outer_loops(kernel, reduce, free.at(reduce.node())).empty()) return out;
  std::vector<UOp> outer{UOp()};
  std::vector<UOp> inner{UOp(reduce.src(0))};
  const std::vector<UOp> outside = outer_loops(kernel, reduce, free.at(reduce.node()));
  for (size_t i = 1; i < reduce.src().size(); ++i) {
    const UOp& r = reduce.src(i);
    (std::find(outside.begin(), outside.end(), r) == outside.end() ? inner : outer).push_back(r);
  }
  if (inner.size() == 1 || bound_together(kernel, outside)) return out;
  if (has_many_parts(reduce, outside, std::span(inner).subspan(1))) return out;
  Graph& graph = reduce.graph();
  outer[0] = graph.make(Op::Reduce, std::move(inner), reduce.arg());
  out.outer = graph.make(Op::Reduce, std::move(outer), reduce.arg());
  out.kernel.roots[0] = substitute(kernel.roots[0], {{reduce, out.outer}});
  if (added) out.added = substitute(added, {{reduce, out.outer}});
  return out;
}

}  // namespace tiny
