#include "tensor/alias.h"

#include <vector>

#include "shape/shape.h"
#include "tensor/elementwise.h"
#include "tensor/value.h"

namespace tiny {

Tensor detach(const Tensor& a) {
  UOp node = make_alias(a.node(), AliasKind::Detached);
  return has_value(a.cell()->node()) ? a.detached(std::move(node)) : a.with(std::move(node));
}

Tensor recompute(const Tensor& a, std::span<const Tensor> kept) {
  std::vector<UOp> begins;
  for (const Tensor& k : kept) begins.push_back(k.node());
  return a.with(make_alias(contiguous(a).node(), AliasKind::Recomputed, begins));
}

}  // namespace tiny
