// Tensors from numbers and from the caller's memory.
#pragma once

#include "tensor/tensor.h"

namespace tiny {

// Copies `bytes` of row-major elements; they must be exactly the shape's.
Tensor from_data(const Ref<Context>& context, DType dtype, const Ints& shape, const void* data,
                 int64_t bytes);

// A tensor that is this memory's first elements, row-major.
Tensor of_storage(const Ref<Context>& context, DType dtype, const Ints& shape,
                  const Ref<Storage>& storage);

// Error{Shape} unless every element of the view is among the first `count` of memory.
void require_inside(const View& view, int64_t count);
// The caller's memory without a copy: element (i0, ..) is at data + i0*strides[0] + .. elements.
// `deleter` (may be null) is called with `user` when nothing needs the memory any more; not if this
// throws.  Memory that is not `is_writable` is only read: a write gives the tensor other memory.
Tensor wrap(const Ref<Context>& context, DType dtype, const Ints& shape, const Ints& strides,
            void* data, void (*deleter)(void*), void* user, bool is_writable = true);

// Every element the same, exactly these bits.
Tensor full_bits(const Ref<Context>& context, DType dtype, const Shape& shape, uint64_t bits);
// Every element `value`, converted to `dtype`.
Tensor full(const Ref<Context>& context, DType dtype, const Shape& shape, double value);
// 0, 1, .. count-1.
Tensor arange(const Ref<Context>& context, DType dtype, const Dim& count);
// How many of start, start + delta, start + 2 * delta .. stay before `limit`; delta is not 0.
Dim range_count(const Dim& start, const Dim& limit, int64_t delta);
int64_t range_count(double start, double limit, double delta);
// start + i * delta for i of 0 .. count-1, of two scalars in their dtype; 16-bit floats are
// computed in float32.
Tensor range(const Tensor& start, const Tensor& delta, const Dim& count);

// A scalar of `like`'s dtype, not weak.
Tensor number(const Tensor& like, double value);
Tensor number_int(const Tensor& like, int64_t value);
// A dimension as an int64 scalar.
Tensor size_tensor(const Ref<Context>& context, const Dim& size);

}  // namespace tiny
