// Functions of tensors that several importers share.
#pragma once

#include <optional>
#include <vector>

#include "onnx/import/call.h"
#include "tensor/indexing.h"
#include "tensor/quantization.h"

namespace tiny::onnx {

// `axis` counted from the front, Error{InvalidModel} unless it is one of `rank`.
int64_t axis_of(int64_t axis, int64_t rank);
// The same for distinct axes.
Ints axes_of(const Ints& axes, int64_t rank);

// Elements indices[0], indices[1], .. of one axis; the indices are checked now.
Tensor take(const Tensor& a, const Ints& indices, int64_t axis);
// Elements of `data` at these row-major positions; a position that is false in `valid` (bool, of
// the same shape) is Error{Index} when the program runs.
Tensor gather_flat(const Tensor& data, const Tensor& position, const Tensor& valid);

// The operand b of an operator before version 7: stretched to a's axes from `axis` on where the
// attribute `broadcast` is set, and otherwise of a's very shape.
Tensor aligned(const Call& call, const Tensor& a, const Tensor& b);

// The sum of `a` in its own dtype.
Tensor sum_same(const Tensor& a, const Ints& axes, bool keepdims);

}  // namespace tiny::onnx
