#include "codegen/linearize/loop_limits.h"

#include <algorithm>

#include "ir/build.h"

namespace tiny {

LoopBounds LoopLimits::launched() {
  LoopBounds out;
  out.begin = emit_.add(0, Op::LaunchArg, kInt64, {}, 0);
  out.end = emit_.add(0, Op::LaunchArg, kInt64, {}, 1);
  return out;
}

LoopBounds LoopLimits::bounds_of(Tasks tasks, size_t position) {
  // Several ranges that are launched are digits of what is.
  const bool is_launched = nest_.at(position).kind == RangeKind::Thread &&
                           thread_ranges(nest_.kernel()) == 1 && !nest_.is_grouped();
  LoopBounds out = is_launched ? launched() : whole(position);
  apply_conditions(tasks, position, out);
  if (const UOp end = running_.end_of_run(tasks, position)) out.end = values_.scalar_index(end);
  return out;
}

LoopBounds LoopLimits::elements_of(Tasks tasks, size_t position) {
  LoopBounds out = whole(position);
  apply_conditions(tasks, position, out);
  return out;
}

LoopBounds LoopLimits::whole(size_t position) {
  LoopBounds out;
  const int64_t limit = nest_.state(position).limit;
  out.begin = emit_.index_constant(0);
  out.end =
      limit ? emit_.index_constant(limit) : values_.scalar_index(UOp(nest_.range(position).src(0)));
  return out;
}

void LoopLimits::apply_conditions(Tasks tasks, size_t position, LoopBounds& limits) {
  const UOp& r = nest_.range(position);
  if (!r.src(0).is_const()) limits.facts.push_back(add(sub(r.src(0), r), -1));
  for (const UOp& fact : nest_.kernel().facts)
    if (std::ranges::all_of(tasks, [&](const Task* t) { return conditions_.guards(fact, *t); }))
      tighten(fact, position, limits);
  const bool is_long = conditions_.is_long_window(tasks, position);
  const bool sums_alone =
      std::ranges::all_of(tasks, [&](const Task* t) { return (t->own & bit(position)) != 0; });
  for (const UOp& condition : conditions_.void_outside(*tasks.front())) {
    const auto is_void = [&](const Task* t) {
      const std::vector<UOp>& all = conditions_.void_outside(*t);
      return std::ranges::find(all, condition) != all.end();
    };
    if (!std::ranges::all_of(tasks, is_void)) continue;
    const RangeSet free = nest_.free_of(condition);
    if (is_long || !nest_.pending_in(free)) tighten(condition, position, limits);
    if (sums_alone && !(free & ~nest_.open())) leave_out(condition, r, limits);
  }
}

// A condition on loops outside alone, without which no step of a sum counts: where it holds,
// (condition + 1) times the loop's steps are no fewer than these, and none are left where it does
// not.
void LoopLimits::leave_out(const UOp& condition, const UOp& range, LoopBounds& limits) {
  if (prover_.proven(condition) || (nest_.free_of(condition) & nest_.local())) return;
  const LinearId end = values_.scalar_index(mul(add(condition, 1), range.src(0)));
  limits.end = emit_.elementwise(Op::Min, kInt64, {limits.end, end});
  limits.facts.push_back(condition);
}

// condition = rest + c * r >= 0, where everything but r is known here, bounds the loop over r. With
// unrolled ranges or lanes in it, the loop leaves out where it holds for none of them.
void LoopLimits::tighten(const UOp& condition, size_t position, LoopBounds& limits) {
  const RangeSet self = bit(position);
  const RangeSet free = nest_.free_of(condition);
  const RangeSet pending = nest_.pending_in(free);
  if (free & nest_.local()) return;  // all threads of a group walk a loop alike
  if (!(free & self) || (free & ~self & (nest_.loops() & ~nest_.open()))) return;
  if (prover_.proven(condition)) return;
  const UOp& r = nest_.range(position);
  const std::optional<Affine> sum = forms_.fixed(condition);
  const int64_t c = sum ? sum->coefficient(r) : 0;
  if (c == 0) return;
  const std::optional<Affine> rest = forms_.extreme(*sum, r, pending, Extreme::Largest);
  if (!rest) return;
  const UOp room = to_uop(condition.graph(), *rest);
  const UOp fact = add(mul(r, c), room);
  if (pending && prover_.proven(fact)) return;
  if (c < 0) {
    const LinearId end = values_.scalar_index(add(floor_div(room, -c), 1));
    limits.end = emit_.elementwise(Op::Min, kInt64, {limits.end, end});
  } else {
    const LinearId begin = values_.scalar_index(mul(floor_div(room, c), -1));
    limits.begin = emit_.elementwise(Op::Max, kInt64, {limits.begin, begin});
  }
  limits.facts.push_back(pending ? fact : condition);
}

}  // namespace tiny
