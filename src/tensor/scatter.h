// Elements written to places that other elements name, in their order: what it costs grows with
// what is written.
#pragma once

#include "tensor/tensor.h"

namespace tiny {

// What becomes of an element and of what is written to it: None leaves the last that is written.
enum class Fold : uint8_t { None, Add, Mul, Max, Min };

// out[i][indices[i][j]].. = updates[i][j].. along `axis` (ONNX ScatterElements), elsewhere data.
// Negative indices count from the end; one out of range ends the run with Error{Index}, here and
// below.
Tensor scatter_elements(const Tensor& data, const Tensor& indices, const Tensor& updates,
                        int64_t axis, Fold fold = Fold::None);
// out[indices[.., 0], indices[.., 1], ..] = updates[..] (ONNX ScatterND), elsewhere data.
Tensor scatter_nd(const Tensor& data, const Tensor& indices, const Tensor& updates,
                  Fold fold = Fold::None);
// Zeros of this shape, but for the elements of `a` at the row-major places that `indices` name.
Tensor scatter_flat(const Tensor& a, const Tensor& indices, const Ints& shape);
// The places of the elements of `mask` (bool, one axis) that are true, in ascending order, int64,
// with zeros behind them; and how many there are, int64 without axes.
struct Chosen {
  Tensor places;
  Tensor count;
};
Chosen chosen_places(const Tensor& mask);
// `data` with `update` in the place of its elements start[i], start[i] + 1, .. of `axis`, for each
// i of the first axis; beyond the end nothing is written, or (`circular`) the beginning.  `start`
// has one axis of integers.
Tensor scatter_slices(const Tensor& data, const Tensor& update, const Tensor& start, int64_t axis,
                      bool circular);

}  // namespace tiny
