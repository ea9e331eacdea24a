// Elements chosen by position, and positions chosen by value.
#pragma once

#include "tensor/tensor.h"

namespace tiny {

// 0, 1, .. n-1 along `axis` of a tensor of `rank` axes, the others of size 1.
Tensor positions(const Ref<Context>& context, DType dtype, const Dim& n, int64_t axis,
                 int64_t rank);

// numpy.take: a[.., index[..], ..] along `axis`.  Negative indices count from the end; one out of
// range ends the run with Error{Index}.
Tensor gather(const Tensor& a, const Tensor& index, int64_t axis = 0);
// Elements indices[0], indices[1], .. of `axis`, which are known and checked now: each at least 0
// and below the axis' size, which is a number.
Tensor index_select(const Tensor& a, const Ints& indices, int64_t axis);
// out[i][j].. = a[i][index[i][j]].. along `axis` (ONNX GatherElements); index has a's rank and is
// nowhere longer but along `axis`.
Tensor take_along_axis(const Tensor& a, const Tensor& index, int64_t axis);
// a[index[.., 0], index[.., 1], ..] after `batch` axes that both share (ONNX GatherND).
Tensor gather_nd(const Tensor& a, const Tensor& index, int64_t batch = 0);
// A new axis of `depth` elements at `axis` with `on` at the index and `off` elsewhere; negative
// indices count from the end, others out of range give only `off`.
Tensor one_hot(const Tensor& index, const Dim& depth, const Tensor& on, const Tensor& off,
               int64_t axis = -1);

// The position of the greatest or lowest element along `axis`, int64: the first of equals (`last`:
// the last); NaN is greatest and lowest.
Tensor argmax(const Tensor& a, int64_t axis, bool keepdims = false, bool last = false);
Tensor argmin(const Tensor& a, int64_t axis, bool keepdims = false, bool last = false);
// 1 at the first greatest element along `axis`, 0 elsewhere, in a's dtype.
Tensor hardmax(const Tensor& a, int64_t axis = -1);

// The first lengths[b] elements along `time` of every b of the axis `batch`, backwards; the others
// stay.  A length beyond the axis ends the run with Error{Index}.
Tensor reverse_sequence(const Tensor& a, const Tensor& lengths, int64_t batch, int64_t time);
// Keeps a[.., i, j] where j - i >= diagonal (triu) or <= diagonal (tril), 0 elsewhere.
Tensor triu(const Tensor& a, int64_t diagonal = 0);
Tensor tril(const Tensor& a, int64_t diagonal = 0);
// [rows, columns] of 1 where column - row = diagonal, 0 elsewhere.
Tensor eye(const Ref<Context>& context, DType dtype, const Dim& rows, const Dim& columns,
           int64_t diagonal = 0);

// Repeats the whole of every axis.
Tensor tile(const Tensor& a, const Shape& repeats);
// Blocks of channels become blocks of pixels, and back; [n, c, h, w].  `columns_first` is ONNX's
// mode CRD, otherwise DCR.
Tensor depth_to_space(const Tensor& a, int64_t block, bool columns_first = false);
Tensor space_to_depth(const Tensor& a, int64_t block);

}  // namespace tiny
