#include "tensor/unique.h"

#include "base/error.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"
#include "tensor/scan.h"
#include "tensor/scatter.h"
#include "tensor/top_k.h"

namespace tiny {

namespace {

// Where each row stands that comes at a place in ascending order, of equals the earlier first: by
// comparing each with each, whose first different element decides.
Tensor order_of_rows(const Tensor& rows, int64_t n) {
  const Ref<Context>& context = rows.context_ref();
  const Dim m = rows.shape()[1];
  const Tensor one = unsqueeze(rows, {1}), other = unsqueeze(rows, {0});
  const Tensor element = positions(context, kInt64, m, 2, 3);
  const Tensor differs =
      min(where(not_equal(one, other), element, size_tensor(context, m)), {2}, true);
  const Tensor is_less = any(bit_and(equal(element, differs), less(other, one)), {2});
  const Tensor is_equal = equal(squeeze(differs, {2}), size_tensor(context, m));
  const Tensor is_earlier =
      less(positions(context, kInt64, n, 1, 2), positions(context, kInt64, n, 0, 2));
  const Tensor is_before = bit_or(is_less, bit_and(is_equal, is_earlier));
  const Tensor rank = sum(cast(is_before, kInt64), {1});
  return scatter_elements(full(context, kInt64, {n}, 0), rank, arange(context, kInt64, n), 0);
}

// Element i of `values` at the place places[i].
Tensor put(const Tensor& values, const Tensor& places) {
  return scatter_elements(full(values.context_ref(), values.dtype(), values.shape(), 0), places,
                          values, 0);
}

// Each element's neighbour: the one before it (`by` -1) or behind it (1); 0 at the end.
Tensor neighbours(const Tensor& a, int64_t by) {
  const Shape none(static_cast<size_t>(a.rank()), Dim(0));
  Shape before = none, after = none, end = a.shape();
  (by < 0 ? before : after)[0] = 1;
  const Tensor longer = pad(a, before, after);
  if (by > 0) end[0] = end[0] + Dim(1);
  return shrink(longer, after, end);
}

// Whether each of the rows, in order, is unlike the one before.
Tensor begins_of(const Tensor& sorted, const Tensor& place) {
  Tensor differs = not_equal(sorted, neighbours(sorted, -1));
  if (sorted.rank() == 2) differs = any(differs, {1});
  return bit_or(differs, equal(place, number_int(place, 0)));
}

// Where the rows come in ascending order, of equals the earlier first.
Tensor order_of(const Tensor& rows) {
  const Dim n = rows.shape()[0];
  if (!n.is_const()) return ascending_rows(rows);
  return rows.rank() == 1 ? top_k(rows, n, 0, false).indices : order_of_rows(rows, n.value());
}

}  // namespace

Unique unique(const Tensor& rows, bool by_place, const Tensor& present) {
  require(rows.rank() == 1 || rows.rank() == 2, Status::Shape, "rows have one or two axes; got ",
          rows.shape());
  const Dim n = rows.shape()[0];
  const Ref<Context>& context = rows.context_ref();
  const Tensor one = Tensor::weak_int(context, 1);
  const Tensor end = present ? present : size_tensor(context, n);
  const Tensor place = arange(context, kInt64, n);
  Tensor order = order_of(rows);
  // What is present comes first, in order, and the others stay where they are.
  if (present)
    order = where(less(place, end), gather(order, chosen_places(less(order, end)).places), place);
  Tensor begins = begins_of(gather(rows, order), place);
  if (present) begins = bit_and(begins, less(place, end));
  const Tensor group = sub(cumsum(cast(begins, kInt64), 0), one);  // of each, in order
  const Chosen chosen = chosen_places(begins);
  // Each group ends where the next begins.
  const Tensor begin = where(less(place, chosen.count), chosen.places, end);
  const Tensor next = where(less(add(place, one), size_tensor(context, n)), neighbours(begin, 1),
                            cast(end, kInt64));
  const Tensor counts = sub(next, begin);
  const Tensor first = gather(order, chosen.places);
  if (!by_place) return {chosen.count, first, counts, put(group, order)};
  // Groups are numbered anew, by where their first rows stand.
  const Tensor is_first = put(begins, order);
  const Tensor number = sub(cumsum(cast(is_first, kInt64), 0), one);
  const Chosen firsts = chosen_places(is_first);
  const Tensor group_of = put(group, order);
  return {firsts.count, firsts.places, gather(counts, gather(group_of, firsts.places)),
          gather(number, gather(first, group_of))};
}

}  // namespace tiny
