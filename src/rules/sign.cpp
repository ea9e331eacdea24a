#include "rules/sign.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "ir/kernel.h"

namespace tiny {

namespace {

constexpr int kDepthMax = 8;

// The ranges that may have other names in a copy of `reduce`'s operand: its own, and those that are
// closed below and mean nothing outside.  None if there are too many to tell.
std::vector<UOp> renamed_ranges(const UOp& reduce) {
  const std::vector<UOp> order = topological({&reduce.src(0), 1});
  Kernel kernel;
  for (const UOp& u : order)
    if (u.op() == Op::Range) kernel.ranges.push_back({u, RangeKind::Loop, false});
  if (kernel.ranges.size() > 64) return {};
  FreeRanges free;
  add_free_ranges(kernel, order, free);
  const RangeSet outside = free.at(reduce.src(0).node());
  std::vector<UOp> out(reduce.src().begin() + 1, reduce.src().end());
  for (size_t i = 0; i < kernel.ranges.size(); ++i)
    if (!(outside & (RangeSet{1} << i))) out.push_back(kernel.ranges[i].range);
  return out;
}

bool is_at_most_zero(const UOp& constant) {
  return double_of(constant.dtype(), constant.const_bits()) <= 0;
}

bool is_never_negative(const UOp& x) {
  return x.op() == Op::Abs || (x.op() == Op::Mul && x.src(0) == x.src(1));
}

bool is_max(const UOp& u) {
  return u.op() == Op::Reduce && u.reduce_arg().op == Op::Max;
}

bool never_positive(const UOp& x, int depth) {
  if (depth > kDepthMax || !x.dtype().is_float()) return false;
  switch (x.op()) {
    case Op::Const:
      return is_at_most_zero(x);
    case Op::Neg:
      return is_never_negative(x.src(0));
    case Op::Min:
      return never_positive(x.src(0), depth + 1) || never_positive(x.src(1), depth + 1);
    case Op::Add:
      for (const size_t side : {size_t{0}, size_t{1}}) {
        const UOp& negated = x.src(side);
        if (negated.op() == Op::Neg && is_max(negated.src(0)) &&
            is_among_reduced(x.src(1 - side), negated.src(0)))
          return true;
      }
      return never_positive(x.src(0), depth + 1) && never_positive(x.src(1), depth + 1);
    default:
      return false;
  }
}

}  // namespace

bool never_positive(const UOp& x) {
  return never_positive(x, 0);
}

bool is_among_reduced(const UOp& value, const UOp& reduce) {
  const std::vector<UOp> renamed = renamed_ranges(reduce);
  std::unordered_map<const Node*, const Node*> counterpart;  // of a node of the operand
  std::vector<std::pair<UOp, UOp>> open{{reduce.src(0), value}};
  while (!open.empty()) {
    const auto [a, b] = open.back();
    open.pop_back();
    const auto [known, fresh] = counterpart.try_emplace(a.node(), b.node());
    if (!fresh) {
      if (known->second != b.node()) return false;
      continue;
    }
    if (a.op() != b.op() || a.dtype() != b.dtype() || a.src().size() != b.src().size())
      return false;
    if (a.op() == Op::Range) {
      const bool may_differ = std::ranges::find(renamed, a) != renamed.end();
      if (!(a == b) && (!may_differ || !(a.src(0) == b.src(0)))) return false;
      continue;
    }
    if (!(a.arg() == b.arg())) return false;
    for (size_t i = 0; i < a.src().size(); ++i) open.emplace_back(a.src(i), b.src(i));
  }
  return true;
}

}  // namespace tiny
