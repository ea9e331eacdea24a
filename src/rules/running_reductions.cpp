#include "rules/running_reductions.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "ir/affine.h"
#include "ir/bounds.h"
#include "ir/build.h"
#include "ir/fold.h"
#include "ir/shared_value.h"
#include "rules/split_ranges.h"

namespace tiny {

namespace {

// A reduction of v[k] for all k up to r + `offset`, after both were turned that count backwards.
struct Prefix {
  UOp reduce;
  UOp of;     // k
  UOp along;  // r
  bool turns_of = false;
  bool turns_along = false;
  int64_t offset = 0;
};

UOp turned(const UOp& range, const UOp& e) {
  return sub(sub(range.src(0), 1), e);
}

bool chooses(const UOp& reduce) {
  return reduce.op() == Op::Reduce && reduce.src().size() == 2 && reduce.src(0).op() == Op::Where;
}

std::optional<Prefix> prefix_of(const Kernel& kernel, const UOp& reduce) {
  if (!chooses(reduce)) return std::nullopt;
  const UOp& chosen = reduce.src(0);
  if (!chosen.src(2).is_const() ||
      chosen.src(2).const_bits() != identity_bits(reduce.reduce_arg().op, reduce.dtype()))
    return std::nullopt;
  const UOp& condition = chosen.src(0);
  if ((condition.op() != Op::Less && condition.op() != Op::LessEqual) ||
      condition.src(0).dtype() != kInt64)
    return std::nullopt;
  UOp slack = slack_of(condition);
  std::optional<Affine> e = affine(slack);
  if (!e || e->terms.size() != 2) return std::nullopt;
  Prefix prefix;
  prefix.reduce = reduce;
  for (const AffineTerm& term : e->terms) {
    if (term.atom.op() != Op::Range) return std::nullopt;
    (term.atom == reduce.src(1) ? prefix.of : prefix.along) = term.atom;
  }
  const UOp &of = prefix.of, &along = prefix.along;
  if (!of || !along || kernel.ranges[kernel.position(along)].reduced ||
      reaches(chosen.src(1), along))
    return std::nullopt;
  prefix.turns_of = e->coefficient(of) > 0;
  prefix.turns_along = e->coefficient(along) < 0;
  if (prefix.turns_of) slack = substitute(slack, {{of, turned(of, of)}});
  if (prefix.turns_along) slack = substitute(slack, {{along, turned(along, along)}});
  e = affine(slack);
  if (!e || e->terms.size() != 2 || e->coefficient(of) != -1 || e->coefficient(along) != 1 ||
      e->constant > 0)
    return std::nullopt;
  prefix.offset = e->constant;
  return prefix;
}

UOp running(const Prefix& prefix) {
  const UOp& reduce = prefix.reduce;
  const UOp at = add(prefix.along, prefix.offset);
  const UOp place = prefix.turns_of ? turned(prefix.of, at) : at;
  UOp part = substitute(reduce.src(0).src(1), {{prefix.of, place}});
  for (const UOp& room : {at, turned(prefix.of, at)})
    if (!prove_nonnegative(room)) part = where(nonnegative(room), part, reduce.src(0).src(2));
  return reduce.graph().make(Op::Running, {part, prefix.along, prefix.along}, reduce.arg());
}

// One of the kernel's reductions becomes a running value; whether there was one.
bool run_next(Kernel& kernel, std::vector<UOp>& turned_ranges) {
  const std::vector<UOp> order = topological(kernel.roots);
  for (const UOp& u : order) {
    const std::optional<Prefix> prefix = prefix_of(kernel, u);
    if (!prefix) continue;
    const UOp& along = prefix->along;
    if (prefix->turns_along) {
      if (runs_along(order, along) ||
          std::ranges::find(turned_ranges, along) != turned_ranges.end())
        continue;
      turned_ranges.push_back(along);
    }
    const UOp value = prefix->turns_along ? UOp() : running(*prefix);
    map_kernel(kernel, [&](const UOp& node, std::vector<UOp>& src) {
      if (value && node == u) return value;
      if (!value && node == along) return turned(along, along);
      return node.with_src(src);
    });
    simplify_indices(kernel);
    return true;
  }
  return false;
}

}  // namespace

void run_reductions(Kernel& of) {
  if (std::ranges::none_of(topological(of.roots), chooses)) return;
  std::vector<UOp> turned_ranges;
  Kernel kernel = split_at_exact_divisors(of);
  bool any = false;
  while (run_next(kernel, turned_ranges)) any = true;
  if (!any) return;
  const std::vector<UOp> order = topological(kernel.roots);
  if (std::ranges::any_of(order, [](const UOp& u) { return u.op() == Op::Reduce; })) return;
  std::erase_if(kernel.ranges, [&](const KernelRange& r) {
    return r.reduced && std::ranges::find(order, r.range) == order.end();
  });
  of = std::move(kernel);
}

}  // namespace tiny
