#include "tensor/alias.h"

#include <vector>

#include "engine/realize.h"
#include "engine/storage.h"
#include "shape/shape.h"
#include "tensor/elementwise.h"

namespace tiny {

namespace {

// Whether the elements are in memory by now; those of a placeholder are not.
bool is_in_memory(const Cell& cell) {
  if (cell.owns_memory()) return true;
  const auto stored = as_view(cell.node());
  const Ref<Storage> storage =
      stored && stored->base.op() == Op::Buffer ? storage_of(stored->base) : nullptr;
  return storage && storage->has_memory();
}

}  // namespace

Tensor detach(const Tensor& a) {
  UOp node = make_alias(a.node(), AliasKind::Detached);
  return is_in_memory(*a.cell()) ? a.detached(std::move(node)) : a.with(std::move(node));
}

Tensor clone(const Tensor& a) {
  return a.with(make_apart(contiguous(a).node(), a.context().next_version()));
}

Tensor recompute(const Tensor& a, std::span<const Tensor> kept) {
  std::vector<UOp> begins;
  for (const Tensor& k : kept) begins.push_back(k.node());
  return a.with(make_alias(contiguous(a).node(), AliasKind::Recomputed, begins));
}

}  // namespace tiny
