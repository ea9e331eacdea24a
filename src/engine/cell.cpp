#include "engine/cell.h"

#include "engine/context.h"

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

}  // namespace tiny
