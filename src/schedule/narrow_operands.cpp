#include "schedule/narrow_operands.h"

#include "schedule/schedule.h"

namespace tiny {

namespace {

// The cast below movement that widens a factor; no node if there is none.
UOp cast_below(const UOp& factor) {
  UOp node = factor;
  while (has(node.op(), kMovement)) node = UOp(node.src(0));
  return node.op() == Op::Cast ? node : UOp();
}

}  // namespace

std::optional<DotKind> dot_kind_of(const UOp& reduce, const Target& target) {
  if (target.dots == 0 || reduce.op() != Op::ReduceAxis || reduce.reduce_arg().op != Op::Add)
    return std::nullopt;
  const UOp& product = reduce.src(0);
  if (product.op() != Op::Mul) return std::nullopt;
  const UOp a = cast_below(product.src(0));
  const UOp b = cast_below(product.src(1));
  if (!a || !b) return std::nullopt;
  bool swapped = false;
  const auto kind = dot_kind(a.src(0).dtype(), b.src(0).dtype(), reduce.dtype(), &swapped);
  return kind && target.has_dot(*kind) ? kind : std::nullopt;
}

UOp without_cast(const UOp& factor) {
  std::vector<UOp> moves;
  UOp node = factor;
  for (; has(node.op(), kMovement); node = UOp(node.src(0))) moves.push_back(node);
  UOp value(node.src(0));
  for (size_t i = moves.size(); i-- > 0;) {
    std::vector<UOp> src(moves[i].src().begin(), moves[i].src().end());
    src[0] = value;
    value = value.graph().make(moves[i].op(), std::move(src), moves[i].arg());
  }
  return value;
}

std::vector<uint8_t> casts_of_factors(std::span<const UOp> roots, const Target& target) {
  std::vector<uint8_t> found(roots.front().graph().id_limit());
  for (const UOp& u : topological(roots, has_memory)) {
    if (has_memory(u) || !dot_kind_of(u, target)) continue;
    for (const UOp& factor : u.src(0).src()) found[cast_below(factor).id()] = 1;
  }
  return found;
}

}  // namespace tiny
