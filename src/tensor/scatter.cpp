#include "tensor/scatter.h"

#include "base/error.h"
#include "shape/shape.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/movement.h"
#include "tensor/promotion.h"
#include "tensor/reduce.h"
#include "tensor/scan.h"

namespace tiny {

namespace {

// Places along an axis of n elements: negative ones counted from the end, one out of range ends the
// run with Error{Index}.
Tensor checked_places(const Tensor& index, const Dim& n) {
  return gather(arange(index.context_ref(), kInt64, n), cast(index, kInt64), 0);
}

// What a fold is of elements of this dtype.
Op op_of(Fold fold, DType dtype) {
  switch (fold) {
    case Fold::Add:
      return dtype.is_bool() ? Op::Or : Op::Add;
    case Fold::Mul:
      return dtype.is_bool() ? Op::And : Op::Mul;
    case Fold::Max:
      return dtype.is_bool() ? Op::Or : Op::Max;
    case Fold::Min:
      return dtype.is_bool() ? Op::And : Op::Min;
    case Fold::None:
      break;
  }
  return Op::Assign;
}

// `places` have the shape of the updates, or repeat along axes that have one element; those out of
// range take nothing.  Sums and products of 16-bit floats are rounded once.
Tensor scattered(const Tensor& data, const Tensor& places, const Tensor& updates, Fold fold,
                 int64_t axis) {
  require(updates.dtype() == data.dtype(), Status::DType, "updates of ", updates.dtype(),
          " for data of ", data.dtype(), "; wanted the same type");
  for (const Dim& d : Shape(updates.shape()))
    if (d.is(0)) return data;
  const bool sums = fold == Fold::Add || fold == Fold::Mul;
  const DType dtype = sums ? accumulator_dtype(data.dtype()) : data.dtype();
  const Tensor all = expand(places, updates.shape());
  const UOp out = make_scatter(cast(data, dtype).node(), all.node(), cast(updates, dtype).node(),
                               op_of(fold, dtype), axis);
  return cast(data.with(out), data.dtype());
}

bool are_equal(const Shape& a, const Shape& b) {
  bool same = a.size() == b.size();
  for (size_t i = 0; same && i < a.size(); ++i) same = decide_equal(a[i], b[i]);
  return same;
}

}  // namespace

Tensor scatter_elements(const Tensor& data, const Tensor& indices, const Tensor& updates,
                        int64_t axis, Fold fold) {
  const int64_t along = checked_axis(axis, data.rank());
  const Shape given = updates.shape();
  require(are_equal(indices.shape(), given) && updates.rank() == data.rank(), Status::Shape,
          "indices of shape ", indices.shape(), " for updates of shape ", given,
          "; wanted the same shape, of as many axes as the data has");
  for (int64_t i = 0; i < data.rank(); ++i) {
    const auto at = static_cast<size_t>(i);
    require(i == along || decide_less_equal(given[at], data.shape()[at]), Status::Shape,
            "updates of shape ", given, " for data of shape ", data.shape(),
            "; wanted no more than that but along the axis");
  }
  const Tensor places = checked_places(indices, data.shape()[static_cast<size_t>(along)]);
  return scattered(data, places, updates, fold, along);
}

Tensor scatter_nd(const Tensor& data, const Tensor& indices, const Tensor& updates, Fold fold) {
  const Shape dims = data.shape();
  Shape outer = indices.shape();
  require(!outer.empty() && outer.back().is_const() && outer.back().value() <= data.rank(),
          Status::Shape, "indices of shape ", indices.shape(), " into ", data.rank(),
          " axes; wanted a last axis of at most as many elements");
  const int64_t depth = outer.back().value();
  outer.pop_back();
  const auto place_axes = dims.begin() + depth;
  Shape wanted = outer;
  wanted.insert(wanted.end(), place_axes, dims.end());
  require(are_equal(updates.shape(), wanted), Status::Shape, "updates of shape ", updates.shape(),
          ", where ", wanted, " is wanted");
  const Dim writes = product(outer);
  const Dim rows = product(Shape(dims.begin(), place_axes));
  const Dim inner = product(Shape(place_axes, dims.end()));
  Tensor place = full(data.context_ref(), kInt64, {writes, 1}, 0);
  const Tensor columns = reshape(indices, {writes, depth});
  for (int64_t i = 0; i < depth; ++i) {
    const Dim n = dims[static_cast<size_t>(i)];
    const Tensor along = checked_places(slice_axis(columns, 1, i, i + 1), n);
    place = place * size_tensor(data.context_ref(), n) + along;
  }
  const Tensor out =
      scattered(reshape(data, {rows, inner}), place, reshape(updates, {writes, inner}), fold, 0);
  return reshape(out, dims);
}

Chosen chosen_places(const Tensor& mask) {
  require(mask.rank() == 1 && mask.dtype().is_bool(), Status::InvalidArgument,
          "places are chosen by bools along one axis; got ", mask.dtype(), " of shape ",
          mask.shape());
  const Dim n = mask.shape()[0];
  const Tensor all = arange(mask.context_ref(), kInt64, n);
  const Tensor ones = cast(mask, kInt64);
  // What is not chosen goes out of range.
  const Tensor target = where(mask, cumsum(ones, 0, true), size_tensor(mask.context_ref(), n));
  const Tensor zeros = full(mask.context_ref(), kInt64, mask.shape(), 0);
  return {scattered(zeros, target, all, Fold::None, 0), sum(ones, {0})};
}

Tensor scatter_flat(const Tensor& a, const Tensor& indices, const Ints& shape) {
  const Dim count = product(to_shape(shape));
  const Tensor zeros = full(a.context_ref(), a.dtype(), {count}, 0);
  const Tensor places = checked_places(flatten(indices), count);
  return reshape(scattered(zeros, places, flatten(a), Fold::None, 0), to_shape(shape));
}

Tensor scatter_slices(const Tensor& data, const Tensor& update, const Tensor& start, int64_t axis,
                      bool circular) {
  const int64_t rank = data.rank();
  const int64_t along = checked_axis(axis, rank);
  require(update.rank() == rank, Status::Shape, "an update of ", update.rank(),
          " axes for data of ", rank, "; wanted as many");
  const Dim n = data.shape()[static_cast<size_t>(along)];
  const Dim m = update.shape()[static_cast<size_t>(along)];
  require(!m.is(0) && decide_less_equal(m, n), Status::Shape, "an update of ", m, " elements for ",
          n, "; wanted 1 to as many");
  Shape wanted = data.shape();
  wanted[static_cast<size_t>(along)] = m;
  require(are_equal(update.shape(), wanted), Status::Shape, "an update of shape ", update.shape(),
          " for data of shape ", data.shape(), "; wanted ", wanted);
  Shape shape(static_cast<size_t>(rank), Dim(1));
  shape[0] = data.shape()[0];
  Tensor places =
      reshape(cast(start, kInt64), shape) + positions(data.context_ref(), kInt64, m, along, rank);
  if (circular) places = floor_mod(places, size_tensor(data.context_ref(), n));
  return scattered(data, places, update, Fold::None, along);
}

}  // namespace tiny
