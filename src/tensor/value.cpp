#include "tensor/value.h"

#include <cstring>
#include <optional>

#include "base/checked.h"
#include "base/error.h"
#include "engine/realize.h"
#include "engine/records.h"
#include "schedule/rewrite_onehot.h"
#include "shape/view.h"
#include "tensor/promotion.h"

namespace tiny {

namespace {

Ints numbers(const Shape& shape) {
  require(all_const(shape), Status::Unsupported, "a tensor of shape ", to_string(shape),
          " has no value outside a program");
  return const_dims(shape);
}

// What holds the memory of `node` now, if anything does.
std::optional<StoredView> memory_of(const UOp& node) {
  UOp base = node;
  while (!storage_of(base)) {
    if (!has(base.op(), kMovement)) return std::nullopt;
    base = UOp(base.src(0));
  }
  std::vector<uint8_t> stored(base.id() + 1);
  stored[base.id()] = 1;
  return as_view(node, stored);
}

// The same value as a view of a Buffer node, so that what computed it can go.
UOp rebound(const UOp& node) {
  if (as_view(node)) return node;
  const auto stored = memory_of(node);
  if (!stored) return node;
  const Ints shape = numbers(stored->view.shape);
  const int64_t count = product(shape_of(stored->base)).value();
  const UOp buffer = make_buffer(node.graph(), storage_of(stored->base), node.dtype(), count);
  const auto [first, last] = extent(stored->view);
  if (first > last || (is_row_major(stored->view) && last + 1 == count))
    return make_reshape(buffer, to_shape(shape));
  return node.graph().make(
      Op::AsStrided, {buffer},
      ViewArg{shape, const_dims(stored->view.strides), stored->view.offset.value()});
}

// A constant is its own value, and nothing needs no memory.
bool needs_memory(const Tensor& t) {
  return !t.node().is_const() && element_count(t) > 0;
}

}  // namespace

void realize(std::span<Tensor* const> tensors) {
  std::vector<UOp> nodes;
  std::vector<Tensor> all;
  for (Tensor* t : tensors) {
    numbers(t->shape());
    all.push_back(*t);
    if (needs_memory(*t)) nodes.push_back(t->node());
  }
  if (nodes.empty()) return;
  require_one_context(all);
  nodes = onehot_to_gather(nodes);
  realize(all.front().context(), nodes);
  size_t next = 0;
  for (Tensor* t : tensors)
    if (needs_memory(*t)) *t = t->with(rebound(nodes[next++]));
}

std::string schedule_json(std::span<Tensor* const> tensors) {
  std::vector<UOp> nodes;
  std::vector<Tensor> all;
  for (Tensor* t : tensors) {
    numbers(t->shape());
    all.push_back(*t);
    if (needs_memory(*t)) nodes.push_back(t->node());
  }
  require_one_context(all);
  nodes = onehot_to_gather(nodes);
  return schedule_json(all.front().context(), nodes);
}

void read(Tensor& tensor, void* data, int64_t bytes) {
  numbers(tensor.shape());
  const int64_t want = element_count(tensor) * tensor.dtype().bytes();
  require(bytes == want, Status::Shape, "shape ", to_string(tensor.shape()), " of ",
          to_string(tensor.dtype()), " has ", want, " bytes; got ", bytes);
  if (bytes == 0) return;
  require(data != nullptr, Status::InvalidArgument, "data is NULL");
  if (tensor.node().is_const()) {
    const uint64_t bits = tensor.node().const_bits();
    std::memcpy(data, &bits, static_cast<size_t>(bytes));
    return;
  }
  Tensor* one[] = {&tensor};
  if (!memory_of(tensor.node())) realize(one);
  read(tensor.context(), tensor.node(), data, bytes);
}

int64_t element_count(const Tensor& tensor) {
  return product(tensor.shape()).value();
}

Ints strides_of(const Tensor& tensor) {
  const Shape& shape = tensor.shape();
  numbers(shape);
  const auto stored = as_view(tensor.node());
  return const_dims(stored ? stored->view.strides : row_major_strides(shape));
}

}  // namespace tiny
