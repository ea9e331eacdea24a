// From tensors to values in memory.
#pragma once

#include <span>

#include "tensor/tensor.h"

namespace tiny {

// Computes the tensors in one schedule, with the writes to them that are pending.  What each is a
// view of becomes memory: the graph that made it is let go.
void realize(std::span<Tensor* const> tensors);

// From now on `target`, and whatever shares its elements, has `value` there: broadcast to its shape
// and converted to its dtype, which must be what the two promote to.  What was built before keeps
// the old elements.  The write happens when something that needs it is computed.
// Error{InvalidArgument} if elements of `target` share memory.
void assign(Tensor& target, const Tensor& value);
// For what a layer keeps beside its result, in memory of its own: whatever computes `companion` (or
// reads it, if it is memory), in a program too, writes.  Until then, and if that never comes,
// `target` has what it had.  Of several such values, each takes what the one before left.
void assign_along(const Tensor& target, const Tensor& value, const Tensor& companion);

// Where the elements lie, row-major, computed before if need be; not to be written to.
Ref<Storage> row_major_memory(Tensor& tensor);

// The elements in new memory of another device, row-major, computed before if need be.
Ref<Storage> copy_to(Device& device, Tensor& tensor);

// Whether the value has memory, in whatever order its elements are there.
bool has_value(const UOp& node);

// Computes `tensor` if need be and copies its elements, row-major, to `data`; `bytes` must be their
// exact size.  The tensor may become a view of memory.
void read(Tensor& tensor, void* data, int64_t bytes);

// The cell gets memory of its own; `keeps` its value there, unless all of it is about to be
// written.
void own_memory(const Tensor& target, bool keeps);
// The memory of the tensor's elements, for others to write: computed, and its own, from now on.
// They tell it (Storage::count_run).  Error{InvalidArgument} if its elements are not row-major.
Ref<Storage> writable_memory(Tensor& tensor);

// Where a tensor's elements are on the host, computed now if need be: element 0, and what keeps the
// memory.  Strides are strides_of.  Null without elements.
struct Elements {
  std::byte* data = nullptr;
  Ref<Storage> memory;
  bool is_own = true;  // others may write there: no other value has the memory
};
Elements elements_of(Tensor& tensor);

int64_t element_count(const Tensor& tensor);
// In elements; row-major for what has no memory yet.
Ints strides_of(const Tensor& tensor);

// The kernels that realize() would launch (engine/records.h); nothing runs.
std::string schedule_json(std::span<Tensor* const> tensors);
UOp scheduled_store(std::span<Tensor* const> tensors, size_t kernel, size_t store);

}  // namespace tiny
