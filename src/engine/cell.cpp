#include "engine/cell.h"

#include "base/wait.h"
#include "engine/context.h"
#include "engine/realize.h"

namespace tiny {

Cell::Cell(Ref<Context> context, UOp node, bool owns_memory)
    : context_(std::move(context)), node_(std::move(node)), owns_memory_(owns_memory) {
  next_ = std::exchange(context_->cells_, this);
  if (next_) next_->previous_ = this;
  note_change();
}

Cell::~Cell() {
  forget_along();
  if (is_changed_) {
    (changed_previous_ ? changed_previous_->changed_next_ : context_->changed_) = changed_next_;
    if (changed_next_) changed_next_->changed_previous_ = changed_previous_;
  }
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

void Cell::set(UOp node) {
  withdraw();
  forget_along();
  node_ = std::move(node);
  note_change();
}

void Cell::write_along(Along write) {
  // A layer that is built twice of the same nodes is computed once.
  for (const Along& known : along_)
    if (known.companion == write.companion && known.value == write.value) return;
  along_.push_back(std::move(write));
  ++context_->along_count_;
}

void Cell::forget_along() {
  context_->along_count_ -= std::ssize(along_);
  along_.clear();
}

void Cell::note_change() {
  if (std::exchange(is_changed_, true)) return;
  changed_next_ = std::exchange(context_->changed_, this);
  if (changed_next_) changed_next_->changed_previous_ = this;
}

namespace {

// A bit above any number of pins: the thread that builds waits for their end.
constexpr uint32_t kAwaited = uint32_t{1} << 31;

// Element 0 of a value that is memory of the host as it lies there, row-major; else null.
const std::byte* elements_of(const UOp& node) {
  const UOp* base = &node;
  while (base->op() == Op::Reshape) base = &base->src(0);
  if (base->op() != Op::Buffer) return nullptr;
  const Ref<Storage> storage = storage_of(*base);
  if (!storage || !storage->has_memory()) return nullptr;
  const std::byte* data = storage->memory().host();
  return data ? data + storage->byte_offset() : nullptr;
}

}  // namespace

void Cell::publish() {
  published_.store(elements_of(node_));
}

// Who reads counts first and looks then; this withdraws first and looks at the count then.
void Cell::withdraw() {
  published_.store(nullptr);
  uint32_t pins = pins_.load();
  if (pins == 0) return;
  pins_.fetch_or(kAwaited);
  while ((pins = pins_.load()) != kAwaited) futex_wait(pins_, pins);
  pins_.fetch_and(~kAwaited);
}

Cell::Pin::Pin(const Cell& cell) : cell_(&cell) {
  cell.pins_.fetch_add(1);
}

Cell::Pin::~Pin() {
  if (cell_ && cell_->pins_.fetch_sub(1) == (kAwaited | 1)) futex_wake(cell_->pins_, 1);
}

void Context::publish_cells() {
  for (Cell* cell = std::exchange(changed_, nullptr); cell;) {
    Cell* next = std::exchange(cell->changed_next_, nullptr);
    cell->changed_previous_ = nullptr;
    cell->is_changed_ = false;
    cell->publish();
    cell = next;
  }
}

void Context::forget_pins() {
  for (Cell* cell = cells_; cell; cell = cell->next()) cell->pins_.store(0);
}

}  // namespace tiny
