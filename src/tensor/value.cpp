#include "tensor/value.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <unordered_set>

#include "base/checked.h"
#include "base/error.h"
#include "engine/computed_anew.h"
#include "engine/realize.h"
#include "engine/records.h"
#include "shape/movement_axis.h"
#include "shape/view.h"
#include "tensor/promotion.h"

namespace tiny {

namespace {

void require_numbers(const TensorShape& shape) {
  require(std::ranges::all_of(shape, &Dim::is_const), Status::InvalidArgument, "a tensor of shape ",
          shape, " has a value in runs of a program alone, which bind its variables");
}

}  // namespace

bool has_value(const UOp& node) {
  UOp base = node;
  while (!storage_of(base)) {
    if (!has(base.op(), kMovement)) return false;
    base = UOp(base.src(0));
  }
  if (base == node) return true;
  if (base.op() == Op::Buffer || base.op() == Op::After) return as_view(node).has_value();
  std::vector<uint8_t> stored(base.id() + 1);
  stored[base.id()] = 1;
  return as_view(node, stored).has_value();
}

namespace {

// What to compute so that the cell's elements are in memory, row-major.  A constant's node is
// everyone's: it never names memory, which could be written to.
UOp whole_value(const UOp& node) {
  UOp base = node;
  while (base.op() == Op::Reshape) base = UOp(base.src(0));
  const bool other_order =
      has(base.op(), kMovement) && base.op() != Op::Pad && !repeats_elements(base);
  return other_order || base.is_const() ? node.graph().make(Op::Contiguous, {node}) : node;
}

// Of a value that was computed, the node that has its memory; none if that was there before.
std::optional<UOp> as_computed(const UOp& value) {
  UOp base = value;
  while (!storage_of(base) && base.op() == Op::Reshape) base = UOp(base.src(0));
  if (!storage_of(base) || base.op() == Op::Buffer) return std::nullopt;
  return base;
}

// Lets the cell name the memory that holds its computed value.
void rebind(Cell& cell, const UOp& computed) {
  const std::optional<UOp> found = as_computed(computed);
  if (!found) return;
  const UOp& base = *found;
  const Ref<Storage> storage = storage_of(base);
  const UOp flat =
      make_buffer(base.graph(), storage, base.dtype(), product(shape_of(base)).value());
  // What was built of elements in another order goes on from where they lie now, and gradients by
  // the tensor find it there.
  const UOp& value = cell.node();
  if (computed.op() == Op::Contiguous && has(value.op(), kMovement) && !storage_of(value))
    value.node()->realized = computed.node()->realized;
  if (storage->claim())
    cell.set_memory(flat);
  else
    cell.set(make_reshape(flat, shape_of(cell.node())));
}

// A constant is its own value, and nothing needs no memory.
bool needs_memory(const UOp& node) {
  return !node.is_const() && !product(shape_of(node)).is(0);
}

}  // namespace

namespace {

// What the tensors need to be computed, each once: the cell, and its value as a whole.
struct Wanted {
  std::vector<Cell*> cells;
  std::vector<UOp> nodes;
};

Wanted wanted_of(std::span<Tensor* const> tensors) {
  Wanted wanted;
  std::unordered_set<const Cell*> seen;
  for (Tensor* t : tensors) {
    require_numbers(t->shape());
    Cell& cell = *t->cell();
    const bool is_computed = has_value(cell.node());
    if (is_computed && cell.owns_memory()) continue;
    if (!needs_memory(cell.node()) || !seen.insert(&cell).second) continue;
    wanted.cells.push_back(&cell);
    wanted.nodes.push_back(is_computed ? cell.node() : whole_value(cell.node()));
  }
  if (!wanted.nodes.empty()) require_one_context(tensors);
  return wanted;
}

// What the values are computed for.
enum class Purpose : uint8_t { Keep, Read };

void compute(std::span<Tensor* const> tensors, Purpose purpose) {
  const Wanted wanted = wanted_of(tensors);
  if (wanted.nodes.empty()) return;
  realize(tensors.front()->context(), wanted.nodes);
  // Who realises a value wants it as it is now.  Who reads one may go on to compile the step that
  // it is part of.
  if (purpose == Purpose::Read)
    for (const UOp& node : wanted.nodes)
      if (const auto stored = as_computed(node)) note_origin(*stored);
  for (size_t i = 0; i < wanted.cells.size(); ++i)
    if (!wanted.cells[i]->owns_memory()) rebind(*wanted.cells[i], wanted.nodes[i]);
  // Nobody keeps the expression that was computed: an equal one that is built after a write to this
  // memory would be the same node, with what was written.
  for (const Tensor* t : tensors) t->node();
}

void compute_to_read(Tensor& tensor) {
  Tensor* one[] = {&tensor};
  compute(one, Purpose::Read);
}

}  // namespace

void realize(std::span<Tensor* const> tensors) {
  compute(tensors, Purpose::Keep);
}

std::string schedule_json(std::span<Tensor* const> tensors) {
  return schedule_json(tensors.front()->context(), wanted_of(tensors).nodes);
}

UOp scheduled_store(std::span<Tensor* const> tensors, size_t kernel, size_t store) {
  return scheduled_store(tensors.front()->context(), wanted_of(tensors).nodes, kernel, store);
}

void read(Tensor& tensor, void* data, int64_t bytes) {
  require_numbers(tensor.shape());
  const int64_t want = element_count(tensor) * tensor.dtype().bytes();
  require(bytes == want, Status::Shape, "shape ", tensor.shape(), " of ", tensor.dtype(), " has ",
          want, " bytes; got ", bytes);
  if (bytes == 0) return;
  require(data != nullptr, Status::InvalidArgument, "data is NULL");
  if (tensor.node().is_const()) {
    const uint64_t bits = tensor.node().const_bits();
    std::memcpy(data, &bits, static_cast<size_t>(bytes));
    return;
  }
  if (!has_value(tensor.node())) compute_to_read(tensor);
  read(tensor.context(), tensor.node(), data, bytes);
}

Ref<Storage> row_major_memory(Tensor& tensor) {
  if (tensor.node().is_const() || product(tensor.shape()).is(0))
    return copy_to(tensor.context().device(), tensor);
  if (!has_value(tensor.node())) compute_to_read(tensor);
  return row_major_memory(tensor.context(), tensor.node());
}

Ref<Storage> copy_to(Device& device, Tensor& tensor) {
  require_numbers(tensor.shape());
  const int64_t bytes = element_count(tensor) * tensor.dtype().bytes();
  if (tensor.node().is_const()) {
    const uint64_t bits = tensor.node().const_bits();
    const auto made = make_ref<Storage>(device.allocate(bytes), 0);
    device.copy_in(nullptr, made->memory(), 0, &bits, bytes);
    return made;
  }
  if (bytes > 0 && !has_value(tensor.node())) compute_to_read(tensor);
  return copy_to(device, tensor.context(), tensor.node(), bytes);
}

Ref<Storage> writable_memory(Tensor& tensor) {
  require(!tensor.is_number(), Status::InvalidArgument,
          "a scalar is a number, not memory to write to");
  require_numbers(tensor.shape());
  const View& view = tensor.view();
  require(all_const(view.strides) && view.offset.is_const() &&
              is_row_major(View{view.shape, view.strides, 0}),
          Status::InvalidArgument, "the elements of the tensor of shape ", view.shape,
          " with strides ", view.strides,
          " are not row-major in memory; tiny_contiguous makes one whose elements are");
  Tensor* one[] = {&tensor};
  realize(one);
  if (!tensor.cell()->owns_memory()) {
    own_memory(tensor, true);
    realize(one);
  }
  const Ref<Storage> storage = storage_of(tensor.cell()->node());
  invariant(storage && storage->has_memory(), "a cell that owns its memory has some");
  return Storage::part(storage, view.offset.value() * tensor.dtype().bytes());
}

namespace {

// Whether the tensor's own view is the way to its elements in memory.
bool lies_as_viewed(const Tensor& tensor) {
  const auto stored = as_view(tensor.node());
  const Ref<Storage> storage = stored ? storage_of(stored->base) : nullptr;
  if (!storage || !storage->has_memory() || !(stored->view.offset == tensor.view().offset))
    return false;
  for (size_t i = 0; i < tensor.shape().size(); ++i)
    if (!tensor.shape()[i].is(1) && !(stored->view.strides[i] == tensor.view().strides[i]))
      return false;
  return true;
}

}  // namespace

Elements elements_of(Tensor& tensor) {
  require(!tensor.is_number(), Status::InvalidArgument,
          "a scalar is a number and has no memory: use a tensor of one element");
  require_numbers(tensor.shape());
  if (product(tensor.shape()).is(0)) return {};
  compute_to_read(tensor);
  if (!lies_as_viewed(tensor)) {  // a constant, or elements in another order
    own_memory(tensor, true);
    compute_to_read(tensor);
  }
  const auto stored = as_view(tensor.node());
  const Ref<Storage> storage = storage_of(stored->base);
  require_values({&stored->base, 1}, {});
  require(storage->memory().host() != nullptr, Status::Device, "the memory of device ",
          tensor.context().device().name(), " is not the host's");
  return {storage->memory().host() + storage->byte_offset() +
              stored->view.offset.value() * tensor.dtype().bytes(),
          storage, tensor.cell()->owns_memory()};
}

int64_t element_count(const Tensor& tensor) {
  return product(tensor.shape()).value();
}

Ints strides_of(const Tensor& tensor) {
  require_numbers(tensor.shape());
  return const_dims(tensor.view().strides);
}

}  // namespace tiny
