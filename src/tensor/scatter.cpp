#include "tensor/scatter.h"

#include <algorithm>

#include "base/checked.h"
#include "base/error.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"

namespace tiny {

namespace {

int64_t length(const Tensor& a, int64_t axis) {
  return a.shape()[static_cast<size_t>(axis)].value();
}
int64_t count_of(const Ints& shape) {
  return product(to_shape(shape)).value();
}

// Places along an axis of n elements: negative ones counted from the end, one out of range ends the
// run with Error{Index}.
Tensor checked_places(const Tensor& index, int64_t n) {
  return gather(arange(index.context_ref(), kInt64, n), cast(index, kInt64), 0);
}

// data [n, k] with updates [m, k] written to the rows that places [m, k or 1] name; -1 is no place.
Tensor scattered(const Tensor& data, const Tensor& places, const Tensor& updates, Fold fold) {
  const Ref<Context>& context = data.context_ref();
  const int64_t n = length(data, 0);
  const int64_t m = length(updates, 0);
  if (m == 0) return data;
  // [n, m, k]
  const Tensor row = positions(context, kInt64, n, 0, 3);
  const Tensor hit = equal(unsqueeze(places, {0}), row);
  const Tensor given = unsqueeze(updates, {0});
  const auto folded = [&](Op op, const Tensor& neutral) {
    return reduce_as_is(where(hit, given, neutral), op, {1}, false);
  };
  const DType dtype = data.dtype();
  const auto end = [&](uint64_t bits) { return full_bits(context, dtype, {}, bits); };
  switch (fold) {
    case Fold::Add:
      return data + folded(Op::Add, number_int(given, 0));
    case Fold::Mul:
      return data * folded(Op::Mul, number_int(given, 1));
    case Fold::Max:
      return maximum(data, folded(Op::Max, end(lowest_bits(dtype))));
    case Fold::Min:
      return minimum(data, folded(Op::Min, end(highest_bits(dtype))));
    case Fold::None:
      break;
  }
  const Tensor writer = positions(context, kInt64, m, 1, 3);
  const Tensor last = max(where(hit, writer, number_int(writer, -1)), {1});
  const Tensor none = less(last, number_int(last, 0));
  const Tensor safe = where(none, number_int(last, 0), last);
  const Tensor wide = expand(safe, to_shape({n, length(updates, 1)}));
  return where(none, data, take_along_axis(updates, wide, 0));
}

Ints order_with_first(int64_t axis, int64_t rank) {
  Ints order{axis};
  for (int64_t i = 0; i < rank; ++i)
    if (i != axis) order.push_back(i);
  return order;
}

Ints inverse(const Ints& order) {
  Ints out(order.size());
  for (size_t i = 0; i < order.size(); ++i)
    out[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  return out;
}

}  // namespace

Tensor scatter_elements(const Tensor& data, const Tensor& indices, const Tensor& updates,
                        int64_t axis, Fold fold) {
  const int64_t along = checked_axis(axis, data.rank());
  require(
      const_dims(indices.shape()) == const_dims(updates.shape()) && updates.rank() == data.rank(),
      Status::Shape, "indices of shape ", indices.shape(), " for updates of shape ",
      updates.shape());
  Tensor places = checked_places(indices, length(data, along));
  // Where the updates are shorter than the data, nothing is written.
  Ints none(static_cast<size_t>(data.rank()), 0), more = none;
  for (int64_t i = 0; i < data.rank(); ++i) {
    if (i == along) continue;
    more[static_cast<size_t>(i)] = length(data, i) - length(updates, i);
    require(more[static_cast<size_t>(i)] >= 0, Status::Shape, "updates of shape ", updates.shape(),
            " for data of shape ", data.shape());
  }
  const auto grown = [&](const Tensor& t) { return pad(t, to_shape(none), to_shape(more)); };
  const Tensor inside = grown(full(data.context_ref(), kBool, updates.shape(), 1));
  places = where(inside, grown(places), number_int(places, -1));
  const Ints order = order_with_first(along, data.rank());
  const auto as_rows = [&](const Tensor& t) {
    const Tensor moved = permute(t, order);
    const Ints dims = const_dims(moved.shape());
    return reshape(moved, to_shape({dims[0], count_of(dims) / std::max<int64_t>(1, dims[0])}));
  };
  const Tensor moved = permute(data, order);
  const Tensor rows = scattered(as_rows(data), as_rows(places), as_rows(grown(updates)), fold);
  return permute(reshape(rows, moved.shape()), inverse(order));
}

Tensor scatter_nd(const Tensor& data, const Tensor& indices, const Tensor& updates, Fold fold) {
  const Ints dims = const_dims(data.shape());
  Ints outer = const_dims(indices.shape());
  require(!outer.empty() && outer.back() <= data.rank(), Status::Shape, "indices of shape ",
          indices.shape(), " into ", data.rank(), " axes");
  const int64_t depth = outer.back();
  outer.pop_back();
  const int64_t writes = count_of(outer);
  int64_t rows = 1;
  Tensor place = full(data.context_ref(), kInt64, to_shape({writes}), 0);
  const Tensor columns = reshape(indices, to_shape({writes, depth}));
  for (int64_t i = 0; i < depth; ++i) {
    const int64_t n = dims[static_cast<size_t>(i)];
    rows *= n;
    const Tensor along = checked_places(squeeze(slice_axis(columns, 1, i, i + 1), {1}), n);
    place = place * number_int(place, n) + along;
  }
  const int64_t inner = rows == 0 ? 0 : count_of(dims) / rows;
  const Tensor out = scattered(reshape(data, to_shape({rows, inner})), unsqueeze(place, {1}),
                               reshape(updates, to_shape({writes, inner})), fold);
  return reshape(out, data.shape());
}

Tensor scatter_flat(const Tensor& a, const Tensor& indices, const Ints& shape) {
  const int64_t count = count_of(shape);
  const int64_t given = count_of(const_dims(a.shape()));
  const Tensor zeros = full(a.context_ref(), a.dtype(), to_shape({count, 1}), 0);
  const Tensor places = unsqueeze(checked_places(flatten(indices), count), {1});
  const Tensor out = scattered(zeros, places, reshape(a, to_shape({given, 1})), Fold::None);
  return reshape(out, to_shape(shape));
}

Tensor scatter_slices(const Tensor& data, const Tensor& update, const Tensor& start, int64_t axis,
                      bool circular) {
  const int64_t rank = data.rank();
  const int64_t along = checked_axis(axis, rank);
  const int64_t n = length(data, along);
  const int64_t m = length(update, along);
  require(m > 0 && m <= n, Status::Shape, "an update of ", m, " elements for ", n);
  Ints shape(static_cast<size_t>(rank), 1);
  shape[0] = length(data, 0);
  // Which element of the update stands at each place.
  Tensor from = positions(data.context_ref(), kInt64, n, along, rank) -
                reshape(cast(start, kInt64), to_shape(shape));
  if (circular) from = floor_mod(from, number_int(from, n));
  const Tensor written =
      bit_and(less_equal(number_int(from, 0), from), less(from, number_int(from, m)));
  const Tensor safe = expand(where(written, from, number_int(from, 0)), data.shape());
  return where(written, take_along_axis(update, safe, along), data);
}

}  // namespace tiny
