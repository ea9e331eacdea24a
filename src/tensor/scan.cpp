#include "tensor/scan.h"

#include "base/checked.h"
#include "ir/build.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/movement.h"
#include "tensor/promotion.h"
#include "tensor/reduce.h"
#include "tensor/window.h"

namespace tiny {

namespace {

// Elements whose sums are made one after the other; they are stored side by side by one kernel.
constexpr int64_t kBlock = 16;

// Running sums along the last axis: of windows that end at each element, inside blocks and then
// over the sums of blocks where the axis is long, so that an element costs a block's steps for each
// level.
Tensor running(const Tensor& a, bool exclusive) {
  const Dim n = a.shape().back();
  const int64_t most = upper_bound(n);
  Shape before(a.shape().size(), Dim(0));
  Shape after = before;
  if (most <= kBlock) {
    before.back() = exclusive ? most : most - 1;
    after.back() = Dim(most) - n;
    const Tensor padded = pad(a, before, after);
    // An exclusive sum has one window more than it needs.
    const Tensor sums =
        reduce_as_is(windows(padded, {most}, {1}, {1}, {most}), Op::Add, {-1}, false);
    return n.is_const() ? sums : slice_axis(sums, -1, 0, n);
  }
  const Dim blocks = floor_div(n + Dim(kBlock - 1), Dim(kBlock));
  const Dim whole = blocks * Dim(kBlock);
  after.back() = whole - n;
  Shape split = a.shape();
  split.back() = blocks;
  split.push_back(kBlock);
  const Tensor rows = a.with(make_reshape(pad(a, before, after).node(), split));
  const Tensor inside = running(rows, exclusive);
  const Tensor totals = reduce_as_is(rows, Op::Add, {-1}, false);
  // Stored in whole blocks: what is cut off them is no kernel's business.
  const Tensor sums = contiguous(add(inside, unsqueeze(running(totals, true), {-1})));
  Shape joined = a.shape();
  joined.back() = whole;
  return slice_axis(a.with(make_reshape(sums.node(), joined)), -1, 0, n);
}

Dim inner_elements(const Tensor& a, int64_t axis) {
  Dim count = 1;
  for (int64_t i = axis + 1; i < a.rank(); ++i) count = count * a.shape()[static_cast<size_t>(i)];
  return count;
}

// Lanes lie along what is inside of the axis where there is enough of it.
constexpr int64_t kInnerMin = 8;

// What has come together up to each element: of each (axis `along`), the others (the next axis) that
// stand before it.  It is stored as it is: kernels that are to read other places of it do not compute
// it, which takes a step for each element only in its own order (rules/running_reductions.h).
Tensor up_to_each(const Tensor& a, int64_t along, Op op, int64_t nothing, bool exclusive,
                  bool reverse) {
  const Dim& n = a.shape()[static_cast<size_t>(along)];
  const Tensor to = positions(a.context_ref(), kInt64, n, along, a.rank() + 1);
  const Tensor from = positions(a.context_ref(), kInt64, n, along + 1, a.rank() + 1);
  const Tensor& low = reverse ? to : from;
  const Tensor& high = reverse ? from : to;
  const Tensor taken = exclusive ? less(low, high) : less_equal(low, high);
  const Tensor spread = where(taken, unsqueeze(a, {along}), number_int(a, nothing));
  return contiguous(reduce_as_is(spread, op, {along + 1}, false));
}

}  // namespace

Tensor cumsum(const Tensor& a, int64_t axis, bool exclusive, bool reverse) {
  const int64_t along = checked_axis(axis, a.rank());
  const Dim size = a.shape()[static_cast<size_t>(along)];
  const DType dtype = sum_dtype(a.dtype());
  Tensor x = cast(a, accumulator_dtype(dtype));
  if (size.is(0)) return cast(x, dtype);
  if (upper_bound(inner_elements(x, along)) >= kInnerMin)
    return cast(up_to_each(x, along, Op::Add, 0, exclusive, reverse), dtype);
  if (reverse) x = flip(x, {along});
  Tensor out = transpose(running(transpose(x, along, -1), exclusive), along, -1);
  if (reverse) out = flip(out, {along});
  return cast(out, dtype);
}

Tensor cumprod(const Tensor& a, int64_t axis, bool exclusive, bool reverse) {
  return up_to_each(a, checked_axis(axis, a.rank()), Op::Mul, 1, exclusive, reverse);
}

}  // namespace tiny
