#include "tensor/scan.h"

#include "base/checked.h"
#include "ir/build.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/movement.h"
#include "tensor/promotion.h"
#include "tensor/reduce.h"

namespace tiny {

namespace {

// What has come together up to each element: of each (axis `along`), the others (the next axis)
// that stand before it.  A step for each element (rules/running_reductions.h).
Tensor up_to_each(const Tensor& a, int64_t along, Op op, int64_t nothing, bool exclusive,
                  bool reverse) {
  const Dim& n = a.shape()[static_cast<size_t>(along)];
  const Tensor to = positions(a.context_ref(), kInt64, n, along, a.rank() + 1);
  const Tensor from = positions(a.context_ref(), kInt64, n, along + 1, a.rank() + 1);
  const Tensor& low = reverse ? to : from;
  const Tensor& high = reverse ? from : to;
  const Tensor taken = exclusive ? less(low, high) : less_equal(low, high);
  const Tensor spread = where(taken, unsqueeze(a, {along}), number_int(a, nothing));
  return reduce_as_is(spread, op, {along + 1}, false);
}

// The steps of one row wait for each other: those of its blocks, then over the sums of blocks, are
// several beside each other.
constexpr int64_t kManyBlocks = 16;
constexpr int64_t kBlockMax = 1008;  // whose starts lie in other sets of a cache than each other's
constexpr int64_t kBlockMin = 500;

// So many elements that blocks are whole, if there is such a number.
int64_t block_of(const Dim& n) {
  for (int64_t size = kBlockMax; n.is_const() && size >= kBlockMin; --size)
    if (n.value() % size == 0) return size;
  return kBlockMax;
}

Tensor in_blocks(const Tensor& a, int64_t axis, bool exclusive, bool reverse) {
  const auto along = static_cast<size_t>(axis);
  const Dim n = a.shape()[along];
  const Dim block(block_of(n));
  const Dim blocks = floor_div(n + block - 1, block);
  const Dim whole = blocks * block;
  const Shape none(a.shape().size(), Dim(0));
  Shape more = none;
  more[along] = whole - n;
  Shape split = a.shape();
  split[along] = blocks;
  split.insert(split.begin() + axis + 1, block);
  const Tensor rows = a.with(make_reshape(pad(a, none, more).node(), split));
  const Tensor totals = contiguous(reduce_as_is(rows, Op::Add, {axis + 1}, true));
  const Tensor before = contiguous(up_to_each(totals, axis, Op::Add, 0, true, reverse));
  const Tensor inside = up_to_each(rows, axis + 1, Op::Add, 0, exclusive, reverse);
  // Stored in whole blocks: what is cut off them is no kernel's business.
  const Tensor sums = contiguous(add(before, inside));
  Shape joined = a.shape();
  joined[along] = whole;
  return slice_axis(a.with(make_reshape(sums.node(), joined)), axis, 0, n);
}

}  // namespace

Tensor cumsum(const Tensor& a, int64_t axis, bool exclusive, bool reverse) {
  const int64_t along = checked_axis(axis, a.rank());
  const DType dtype = sum_dtype(a.dtype());
  const Tensor x = cast(a, accumulator_dtype(dtype));
  Dim rows = 1;
  for (int64_t i = 0; i < a.rank(); ++i)
    if (i != along) rows = rows * a.shape()[static_cast<size_t>(i)];
  const bool is_long =
      upper_bound(a.shape()[static_cast<size_t>(along)]) >= kBlockMax * kManyBlocks;
  if (is_long && rows.is(1)) return cast(in_blocks(x, along, exclusive, reverse), dtype);
  // Stored as it is: a kernel that is to read other places than its own does not compute it.
  return cast(contiguous(up_to_each(x, along, Op::Add, 0, exclusive, reverse)), dtype);
}

Tensor cumprod(const Tensor& a, int64_t axis, bool exclusive, bool reverse) {
  return contiguous(up_to_each(a, checked_axis(axis, a.rank()), Op::Mul, 1, exclusive, reverse));
}

}  // namespace tiny
