#include "tensor/create.h"

#include <bit>
#include <cmath>

#include "base/checked.h"
#include "base/error.h"
#include "engine/storage.h"
#include "ir/build.h"
#include "runtime/device.h"
#include "shape/view.h"
#include "tensor/elementwise.h"
#include "tensor/marks.h"
#include "tensor/movement.h"

namespace tiny {

Tensor from_data(const Ref<Context>& context, DType dtype, const Ints& shape, const void* data,
                 int64_t bytes) {
  check_shape(to_shape(shape), dtype);
  int64_t count = 1;
  for (int64_t d : shape) count *= d;
  require(bytes == count * dtype.bytes(), Status::Shape, "shape ", list_text(shape), " of ", dtype,
          " has ", count * dtype.bytes(), " bytes; got ", bytes);
  require(data != nullptr || bytes == 0, Status::InvalidArgument, "data is NULL");
  return of_storage(context, dtype, shape, context->from_host(data, bytes));
}

Tensor of_storage(const Ref<Context>& context, DType dtype, const Ints& shape,
                  const Ref<Storage>& storage) {
  const UOp buffer =
      make_buffer(context->graph(), storage, dtype, product(to_shape(shape)).value());
  const bool is_own = storage->claim();
  return Tensor::of_memory(context, buffer, row_major(to_shape(shape)), is_own);
}

void require_inside(const View& view, int64_t count) {
  const auto [first, last] = extent(view);
  require(first > last || (first >= 0 && last < count), Status::Shape, "shape ", view.shape,
          " with strides ", view.strides, " from element ", view.offset, " on reaches elements ",
          first, " to ", last, " of memory that has ", count);
}

Tensor wrap(const Ref<Context>& context, DType dtype, const Ints& shape, const Ints& strides,
            void* data, void (*deleter)(void*), void* user, bool is_writable) {
  check_shape(to_shape(shape), dtype);
  require(shape.size() == strides.size(), Status::Shape, shape.size(), " dimensions and ",
          strides.size(), " strides; wanted a stride for each");
  const auto [first, last] = extent(View{to_shape(shape), to_shape(strides), 0});
  const bool empty = first > last;
  require(empty || data != nullptr, Status::InvalidArgument, "data is NULL");
  require(std::bit_cast<uintptr_t>(data) % static_cast<uintptr_t>(dtype.bytes()) == 0,
          Status::InvalidArgument, "data is not aligned to an element of ", dtype);
  const int64_t count =
      empty ? 0 : checked_add(checked_add(last, -first, "a wrapped size"), 1, "a wrapped size");
  const int64_t bytes = checked_mul(count, dtype.bytes(), "a wrapped size");
  // The memory starts at the lowest element that the strides reach.
  std::byte* start = static_cast<std::byte*>(data) + (empty ? 0 : first * dtype.bytes());
  const View view =
      empty ? row_major(to_shape(shape)) : View{to_shape(shape), to_shape(strides), -first};
  if (!context->device().sees_host()) {
    const Ref<Storage> copy = context->from_host(start, bytes);
    copy->claim();
    if (is_writable) copy->set_copy_of_callers();
    Tensor out =
        Tensor::of_memory(context, make_buffer(context->graph(), copy, dtype, count), view, false);
    if (deleter) deleter(user);
    return out;
  }
  const Ref<Buffer> memory = context->device().wrap(empty ? nullptr : start, bytes);
  auto storage = make_ref<Storage>(memory, 0);
  storage->claim();
  Tensor out = Tensor::of_memory(context, make_buffer(context->graph(), storage, dtype, count),
                                 view, is_writable);
  // The deleter is attached once nothing can fail any more.
  storage->set_deleter(deleter, user);
  return out;
}

Tensor full_bits(const Ref<Context>& context, DType dtype, const Shape& shape, uint64_t bits) {
  check_shape(shape, dtype);
  return Tensor(context, broadcast_to(context->graph().constant_bits(dtype, bits), shape));
}

Tensor full(const Ref<Context>& context, DType dtype, const Shape& shape, double value) {
  return full_bits(context, dtype, shape, bits_of(dtype, value));
}

Tensor arange(const Ref<Context>& context, DType dtype, const Dim& count) {
  check_shape({count}, dtype);
  const UOp node = dtype.is_bool() ? cast(make_iota(context->graph(), count, kInt64), dtype)
                                   : make_iota(context->graph(), count, dtype);
  return Tensor(context, node);
}

Dim range_count(const Dim& start, const Dim& limit, int64_t delta) {
  require(delta != 0, Status::InvalidArgument, "a range in steps of 0; wanted another step");
  const Dim span = delta > 0 ? limit - start : start - limit;
  const int64_t step = delta > 0 ? delta : checked_mul(delta, -1, "a range");
  return decide_less_equal(0, span) ? floor_div(span + (step - 1), step) : Dim(0);
}

int64_t range_count(double start, double limit, double delta) {
  require(delta != 0, Status::InvalidArgument, "a range in steps of 0; wanted another step");
  const double count = std::ceil((limit - start) / delta);
  require(count <= static_cast<double>(kDimMax), Status::Limit, "a range of ", count, " elements");
  return count > 0 ? static_cast<int64_t>(count) : 0;
}

Tensor range(const Tensor& start, const Tensor& delta, const Dim& count) {
  const DType dtype = start.dtype();
  const DType wide = dtype.is_float() && dtype.bits() < 32 ? kFloat32 : dtype;
  const Tensor steps = arange(start.context_ref(), wide, count) * cast(delta, wide);
  return cast(cast(start, wide) + steps, dtype);
}

Tensor number(const Tensor& like, double value) {
  return like.with(like.graph().constant(like.dtype(), value));
}

Tensor number_int(const Tensor& like, int64_t value) {
  return like.with(like.graph().constant_int(like.dtype(), value));
}

Tensor size_tensor(const Ref<Context>& context, const Dim& size) {
  return Tensor(context, size.uop(context->graph()));
}

}  // namespace tiny
