#include "tensor/scan.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/checked.h"
#include "ir/build.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/joining.h"
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

// So many rows are summed one after the other by one kernel, which reads each once.
constexpr int64_t kWholeRows = 2 * kBlock;

int64_t rows_of_block(int64_t n) {
  for (int64_t rows = kBlock; rows > 1; --rows)
    if (n % rows == 0) return rows;
  return 1;
}

// Running sums of rows, one after the other; those of a block from the sum `before` it.
Tensor sums_of_rows(const Tensor& a, int64_t axis, bool exclusive, bool reverse,
                    const std::optional<Tensor>& before) {
  const int64_t rows = a.shape()[static_cast<size_t>(axis)].value();
  std::vector<Tensor> sums(static_cast<size_t>(rows));
  std::optional<Tensor> sum;
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t at = reverse ? rows - 1 - i : i;
    const Tensor row = slice_axis(a, axis, at, at + 1);
    const std::optional<Tensor> next = sum ? add(*sum, row) : row;
    const std::optional<Tensor>& part = exclusive ? sum : next;
    sums[static_cast<size_t>(at)] = part && before ? add(*before, *part)
                                    : part         ? *part
                                    : before       ? *before
                                             : full(row.context_ref(), row.dtype(), row.shape(), 0);
    sum = next;
  }
  return concat(sums, axis);
}

// Running sums along any axis, from its end if `reverse`: those of a block's rows one after the
// other, from the sum of the blocks before.
Tensor running_rows(const Tensor& a, int64_t axis, bool exclusive, bool reverse) {
  const auto along = static_cast<size_t>(axis);
  const int64_t n = a.shape()[along].value();
  if (n <= kWholeRows) return sums_of_rows(a, axis, exclusive, reverse, {});
  const int64_t rows = rows_of_block(n);
  if (rows == 1) {
    Shape none(static_cast<size_t>(a.rank()), Dim(0));
    Shape more = none;
    more[along] = round_up(n, kBlock) - n;
    const Tensor padded = reverse ? pad(a, more, none) : pad(a, none, more);
    const Tensor sums = running_rows(padded, axis, exclusive, reverse);
    const Dim first = reverse ? more[along] : Dim(0);
    return slice_axis(sums, axis, first, first + n);
  }
  Shape shape = a.shape();
  shape[along] = n / rows;
  shape.insert(shape.begin() + axis + 1, Dim(rows));
  const Tensor blocks = reshape(a, shape);
  const Tensor totals = reduce_as_is(blocks, Op::Add, {axis + 1}, true);
  const Tensor before = running_rows(totals, axis, true, reverse);
  return reshape(sums_of_rows(blocks, axis + 1, exclusive, reverse, before), a.shape());
}

}  // namespace

Tensor cumsum(const Tensor& a, int64_t axis, bool exclusive, bool reverse) {
  const int64_t along = checked_axis(axis, a.rank());
  const Dim size = a.shape()[static_cast<size_t>(along)];
  const DType dtype = sum_dtype(a.dtype());
  Tensor x = cast(a, accumulator_dtype(dtype));
  if (size.is(0)) return cast(x, dtype);
  if (upper_bound(inner_elements(x, along)) >= kInnerMin)
    return cast(running_rows(x, along, exclusive, reverse), dtype);
  if (reverse) x = flip(x, {along});
  Tensor out = transpose(running(transpose(x, along, -1), exclusive), along, -1);
  if (reverse) out = flip(out, {along});
  return cast(out, dtype);
}

}  // namespace tiny
