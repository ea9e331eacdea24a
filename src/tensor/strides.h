// Views of memory by their strides, and the movement that makes them.
#pragma once

#include "shape/strides.h"
#include "tensor/tensor.h"

namespace tiny {

// Element (i0, ..) is element offset + i0*strides[0] + .. of a's memory, counted from its own first
// element; of a computed value, of its row-major elements.  The result's view is exactly that.
Tensor as_strided(const Tensor& a, const Shape& shape, const Shape& strides, const Dim& offset);

// Memory of its own, of just as many elements as the strides reach; what they are is not said.
Tensor empty_strided(const Ref<Context>& context, DType dtype, const Ints& shape,
                     const Ints& strides);

// `a` after the step; a view wherever the function of that name makes one.
Tensor apply_movement_op(const Tensor& a, const MovementStep& step);

}  // namespace tiny
