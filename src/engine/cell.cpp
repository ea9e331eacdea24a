#include "engine/cell.h"

#include "engine/context.h"
#include "engine/realize.h"

namespace tiny {

Cell::Cell(Ref<Context> context, UOp node, bool owns_memory)
    : context_(std::move(context)), node_(std::move(node)), owns_memory_(owns_memory) {
  next_ = std::exchange(context_->cells_, this);
  if (next_) next_->previous_ = this;
}

Cell::~Cell() {
  (previous_ ? previous_->next_ : context_->cells_) = next_;
  if (next_) next_->previous_ = previous_;
}

const UOp& Cell::node() const {
  if (owns_memory_ && node_.op() == Op::Buffer) {
    const Ref<Storage> storage = storage_of(node_);
    if (!storage->is_current())
      node_ = node_.graph().make(Op::Buffer, {node_.src(0)},
                                 Ref<RefCounted>(make_ref<Storage>(storage)), node_.dtype());
  }
  return node_;
}

}  // namespace tiny
