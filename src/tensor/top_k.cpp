#include "tensor/top_k.h"

#include "base/error.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"

namespace tiny {

namespace {

// Whether a stands before b in descending order; a NaN counts as the greatest.
Tensor greater_total(const Tensor& a, const Tensor& b) {
  const Tensor more = less(b, a);
  if (!a.dtype().is_float()) return more;
  return bit_or(more, bit_and(is_nan(a), invert(is_nan(b))));
}

}  // namespace

TopK top_k(const Tensor& a, int64_t k, int64_t axis, bool largest) {
  const int64_t along = checked_axis(axis, a.rank());
  const int64_t n = a.shape()[static_cast<size_t>(along)].value();
  require(k >= 0 && k <= n, Status::InvalidArgument, "k = ", k, " of ", n, " elements");
  const Ref<Context>& context = a.context_ref();
  const Tensor moved = transpose(a, along, -1);
  const int64_t rank = moved.rank() + 1;
  // How many elements stand before each: [.., n, n] counted over the last axis.
  const Tensor self = unsqueeze(moved, {rank - 1});
  const Tensor other = unsqueeze(moved, {rank - 2});
  const Tensor before = largest ? greater_total(other, self) : greater_total(self, other);
  const Tensor after = largest ? greater_total(self, other) : greater_total(other, self);
  const Tensor earlier = less(positions(context, kInt64, n, rank - 1, rank),
                              positions(context, kInt64, n, rank - 2, rank));
  const Tensor first = bit_or(before, bit_and(invert(bit_or(before, after)), earlier));
  const Tensor place = reduce_as_is(cast(first, kInt64), Op::Add, {-1}, false);
  // Of the elements, the one whose place is 0, 1, .. k-1.
  const Tensor hit =
      equal(unsqueeze(place, {rank - 2}), positions(context, kInt64, k, rank - 2, rank));
  const Tensor which = positions(context, kInt64, n, rank - 1, rank);
  const Tensor index = reduce_as_is(where(hit, which, number_int(which, 0)), Op::Add, {-1}, false);
  return {transpose(take_along_axis(moved, index, -1), along, -1), transpose(index, along, -1)};
}

}  // namespace tiny
