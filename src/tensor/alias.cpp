#include "tensor/alias.h"

#include <vector>

#include "engine/compile.h"
#include "shape/shape.h"
#include "tensor/elementwise.h"
#include "tensor/value.h"

namespace tiny {

Tensor detach(const Tensor& a) {
  UOp node = make_alias(a.node(), AliasKind::Detached);
  // An input of programs has its memory in their runs: what is written to its value is another's.
  UOp base = a.cell()->node();
  while (base.op() == Op::Reshape) base = UOp(base.src(0));
  const bool is_memory = has_value(a.cell()->node()) && !is_input(base);
  return is_memory ? a.detached(std::move(node)) : a.with(std::move(node));
}

Tensor recompute(const Tensor& a, std::span<const Tensor> kept) {
  std::vector<UOp> begins;
  for (const Tensor& k : kept) begins.push_back(k.node());
  return a.with(make_alias(contiguous(a).node(), AliasKind::Recomputed, begins));
}

}  // namespace tiny
