// The same elements, seen in another way: nothing is copied.  Axes may be negative; they count from
// the end.
#pragma once

#include "tensor/tensor.h"

namespace tiny {

// The shape that both broadcast to, as NumPy's rules say; Error{Shape} if there is none.
Shape broadcast_shape(const Shape& a, const Shape& b);
// `node` repeated to `shape`, which it broadcasts to.
UOp broadcast_to(const UOp& node, const Shape& shape);

// `axis` counted from the front; Error{Shape} unless it is one of `rank`.
int64_t checked_axis(int64_t axis, int64_t rank);
// Distinct axes counted from the front, in the given order.
Ints checked_axes(const Ints& axes, int64_t rank);
Ints every_axis(int64_t rank);
// Error{Shape} for a negative dimension, more than kRankMax of them, or more bytes of `dtype` than
// an int64 counts.
void check_shape(const Shape& shape, DType dtype);

// At most one dimension may be -1: what is left over.
Tensor reshape(const Tensor& a, const Shape& shape);
// Axis k of the result is axis axes[k].
Tensor permute(const Tensor& a, const Ints& axes);
Tensor transpose(const Tensor& a, int64_t axis, int64_t other);
// Axis `from` in the place `to`, the others in their order.
Tensor move_axis(const Tensor& a, int64_t from, int64_t to);
// Repeats axes of size 1; missing leading axes are added; -1 keeps a size.
Tensor expand(const Tensor& a, const Shape& shape);
Tensor flip(const Tensor& a, const Ints& axes);
// Adds before[k] and after[k] elements `value` around axis k; negative numbers take away.
Tensor pad(const Tensor& a, const Shape& before, const Shape& after, double value = 0);
// Elements begin[k] <= i < end[k] of every axis k; no clamping.
Tensor shrink(const Tensor& a, const Shape& begin, const Shape& end);
// Python's begin:end:step on every axis; kSliceEnd for an open end.
Tensor slice(const Tensor& a, const Shape& begin, const Shape& end, const Ints& step = {});
inline constexpr int64_t kSliceEnd = INT64_MAX;
// Elements begin, .. end-1 of one axis.
Tensor slice_axis(const Tensor& a, int64_t axis, const Dim& begin, const Dim& end);
// Removes axes of size 1; without axes every such.
Tensor squeeze(const Tensor& a, const Ints& axes);
Tensor squeeze(const Tensor& a);
// Adds axes of size 1; `axes` are places in the result.
Tensor unsqueeze(const Tensor& a, const Ints& axes);
// One axis for begin <= axis < end.
Tensor flatten(const Tensor& a, int64_t begin = 0, int64_t end = kSliceEnd);

}  // namespace tiny
