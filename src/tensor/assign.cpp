#include <algorithm>
#include <numeric>

#include "base/checked.h"
#include "base/error.h"
#include "engine/realize.h"
#include "engine/storage.h"
#include "tensor/movement.h"
#include "tensor/promotion.h"
#include "tensor/value.h"

namespace tiny {

namespace {

// Views up to this size are looked at element by element.
constexpr int64_t kElementsMax = int64_t{1} << 24;

bool overlaps_itself(const View& view) {
  if (is_nested(view)) return false;
  if (!view.offset.is_const()) return true;  // wherever it is: nobody looks at each place
  const auto [first, last] = extent(view);
  const int64_t count = product(view.shape).value();
  if (count > last - first + 1) return true;
  if (last - first >= kElementsMax) return true;
  std::vector<uint8_t> seen(static_cast<size_t>(last - first + 1));
  for (int64_t flat = 0; flat < count; ++flat) {
    int64_t at = view.offset.value() - first;
    int64_t rest = flat;
    for (size_t i = view.shape.size(); i-- > 0;) {
      at += rest % view.shape[i].value() * view.strides[i].value();
      rest /= view.shape[i].value();
    }
    if (std::exchange(seen[static_cast<size_t>(at)], uint8_t{1})) return true;
  }
  return false;
}

}  // namespace

void own_memory(const Tensor& target, bool keeps) {
  Cell& cell = *target.cell();
  if (cell.owns_memory()) return;
  Context& context = target.context();
  const UOp value = cell.node();
  const Ref<Storage> known = storage_of(value);
  require(!known || !known->is_copy_of_callers(), Status::Device, "the device \"",
          context.device().name(),
          "\" has a copy of memory that was wrapped, which it does not see: it cannot write there");
  const int64_t count = product(shape_of(value)).value();
  const Ref<Storage> storage = context.allocate(count * value.dtype().bytes());
  storage->claim();
  UOp memory = make_buffer(context.graph(), storage, value.dtype(), count);
  if (keeps) {
    const UOp flat = make_reshape(value, {Dim(count)});
    memory = make_version(memory, memory, flat, context.next_version());
  }
  cell.set_memory(memory);
}

void assign(Tensor& target, const Tensor& value) {
  const Tensor* const both[] = {&target, &value};
  require_one_context(both);
  require(!target.is_number(), Status::InvalidArgument,
          "a scalar is a number, not memory to assign to");
  const DType met = common_dtype(both);
  require(met == target.dtype(), Status::DType, "a value of ", value.dtype(),
          " is assigned to a tensor of ", target.dtype(), ", but the two promote to ", met);
  const View& view = target.view();
  require(all_const(view.shape) && all_const(view.strides) &&
              all_const(shape_of(target.cell()->node())),
          Status::Unsupported, "an assignment to a tensor of shape ", view.shape);
  require(broadcast_shape(target.shape(), value.shape()) == target.shape(), Status::Shape,
          "a value of shape ", value.shape(), " does not broadcast to the shape ", target.shape(),
          " that it is assigned to");
  if (product(view.shape).is(0)) return;
  // What is written in place is often assigned to where it is once more: `x[1] += 2` in Python.
  if (value.cell() == target.cell() && value.view() == view) return;
  // PyTorch's words, which programs look for.
  require(
      !overlaps_itself(view), Status::InvalidArgument,
      "unsupported operation: more than one element of the written-to tensor refers to a single "
      "memory location. Please clone() the tensor before performing the operation. It has shape ",
      view.shape, " with strides ", view.strides);
  // The value is of before the write, whatever it reads.
  const UOp written = broadcast_to(as_dtype(value, met), target.shape());
  Cell& cell = *target.cell();
  const Dim count = product(shape_of(cell.node()));
  own_memory(target, !(product(view.shape) == count));
  cell.set(make_version(cell.node(), view_of_memory(cell.node(), view), written,
                        target.context().next_version()));
}

void assign_along(const Tensor& target, const Tensor& value, const Tensor& companion) {
  const Tensor* const all[] = {&target, &value, &companion};
  require_one_context(all);
  Cell& cell = *target.cell();
  invariant(cell.owns_memory() && is_row_major(target.view()) && value.shape() == target.shape() &&
                value.dtype() == target.dtype(),
            "what is written along is a tensor of its own as a whole");
  cell.write_along({cell.node(), value.node(), companion.node()});
}

}  // namespace tiny
