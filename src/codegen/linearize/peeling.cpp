#include "codegen/linearize/peeling.h"

#include <algorithm>
#include <bit>

#include "base/checked.h"
#include "cost/borders.h"
#include "ir/build.h"

namespace tiny {

namespace {

// Values that all instances share, for each instance: so many cost more as a copy than a branch.
constexpr int64_t kSharedMin = 6;
// Bounds beyond it are of no use, and their sums would overflow.
constexpr int64_t kBoundMax = int64_t{1} << 48;

}  // namespace

// Whether the instances of these stores share most of what they are made of: an edge tile computes
// as much as any other, so that a copy of the loop for it is code for nothing, and a branch before
// some of the stores does.
bool Peeling::shares_values(Tasks tasks) {
  RangeSet instances_of = 0;
  std::vector<UOp> values;
  for (const Task* t : tasks) {
    if (t->node.op() != Op::Store) return false;
    instances_of |= nest_.instances_of(t->node, t->own);
    values.push_back(t->node.src(1));
  }
  int64_t least = kSharedMin;
  for (RangeSet set = instances_of; set; set &= set - 1)
    least *= nest_.extent(static_cast<size_t>(std::countr_zero(set)));
  int64_t shared = 0;
  for (const UOp& u : topological(values)) {
    if (closes_ranges(u) || u.op() == Op::Running) return false;
    const bool is_value = u.op() == Op::Load || (has(u.op(), kElementwise) && !is_index(u));
    if (is_value && !nest_.pending_in(nest_.free_of(u) & nest_.unrolled())) ++shared;
  }
  return shared >= least;
}

std::optional<Peeling::Bound> Peeling::bound_of(const UOp& condition, size_t position) {
  const UOp& r = nest_.range(position);
  std::optional<Affine> rest = forms_.fixed(condition);
  const int64_t c = rest ? rest->coefficient(r) : 0;
  if (c == 0) return std::nullopt;
  std::erase_if(rest->terms, [&](const AffineTerm& term) { return term.atom == r; });
  const int64_t worst = prover_.bounds_of(*rest).lo;
  if (worst < -kBoundMax || worst > kBoundMax) return std::nullopt;
  return Bound{c, worst};
}

std::optional<Peel> Peeling::find_peel(Tasks tasks, size_t position, int64_t end) {
  const UOp& r = nest_.range(position);
  Peel peel{0, end, {}};
  bool is_wanted = false;
  for (const UOp& e : conditions_.of_tasks(tasks)) {
    const RangeSet free = nest_.free_of(e);
    if (!(free & bit(position)) || !nest_.pending_in(free) || prover_.proven(e)) continue;
    if (prover_.follows_from_kernel(e)) continue;  // whose loops are cut for them
    // The loops that fill a stage are peeled themselves: no copy of what else is in this one.
    if (free & nest_.filling() & ~nest_.open() & ~bit(position)) continue;
    const std::optional<Bound> bound = bound_of(e, position);
    if (!bound) continue;
    const auto [c, worst] = *bound;
    int64_t first = peel.first;
    int64_t last = peel.last;
    if (c > 0) first = std::max(first, ceil_div(-worst, c));
    if (c < 0) last = std::min(last, floor_div(worst, -c) + 1);
    if (first > kPeeledMax || end - last > kPeeledMax || last < first) continue;
    peel.first = first;
    peel.last = last;
    peel.facts.push_back(add(mul(r, c), worst));
    const std::vector<UOp>& facts = nest_.kernel().facts;
    const bool guards_stores = std::ranges::find(facts, e) != facts.end();
    is_wanted = is_wanted || !guards_stores || (free & nest_.lanes()) || !shares_values(tasks);
  }
  if (!is_wanted || (peel.first == 0 && peel.last == end)) return std::nullopt;
  return peel;
}

// c * r + rest >= 0 with c < 0 holds for all unrolled coordinates and lanes where it holds for the
// worst of them: up to rest' // -c.
std::optional<Split> Peeling::find_split(Tasks tasks, size_t position) {
  const UOp& r = nest_.range(position);
  const bool is_const = r.src(0).is_const();
  if (is_const && !conditions_.is_long_window(tasks, position)) return std::nullopt;
  const RangeSet self = bit(position);
  Split split;
  for (const UOp& e : conditions_.of_tasks(tasks)) {
    const RangeSet free = nest_.free_of(e);
    const RangeSet pending = nest_.pending_in(free);
    if (!(free & self) || !pending || (free & ~self & nest_.loops() & ~nest_.open())) continue;
    if (prover_.proven(e)) continue;
    const std::optional<Affine> sum = forms_.fixed(e);
    const int64_t c = sum ? sum->coefficient(r) : 0;
    if (c == 0 || (c > 0 && !is_const)) continue;
    const std::optional<Affine> worst = forms_.extreme(*sum, r, pending, Extreme::Smallest);
    if (!worst) continue;
    const UOp room = to_uop(e.graph(), *worst);
    const UOp fact = add(mul(r, c), room);
    if (std::ranges::find(split.facts, fact) != split.facts.end()) continue;
    if (c < 0) {
      const UOp last = add(floor_div(room, -c), 1);
      split.last = split.last ? minimum(split.last, last) : last;
    } else {
      const UOp first = mul(floor_div(room, c), -1);
      split.first = split.first ? maximum(split.first, first) : first;
    }
    split.facts.push_back(fact);
  }
  if (split.facts.empty()) return std::nullopt;
  return split;
}

}  // namespace tiny
