// Elements chosen by other elements.
#include "base/error.h"
#include "onnx/import/functions.h"
#include "onnx/import/table.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/joining.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"

namespace tiny::onnx {

namespace {

Tensors import_gather(Call& c) {
  return {gather(c.in(0), c.in(1), c.attr("axis", 0))};
}

// An index as int64, negative ones counted from the end, and whether it is one of 0 .. n-1.
struct Checked {
  Tensor index;
  Tensor valid;
};
Checked checked_index(const Tensor& index, int64_t n) {
  const Tensor wide = cast(index, kInt64);
  const Tensor zero = number_int(wide, 0);
  const Tensor size = number_int(wide, n);
  const Tensor wrapped = where(less(wide, zero), wide + size, wide);
  return {wrapped, bit_and(less_equal(zero, wrapped), less(wrapped, size))};
}

Ints strides_for(const Ints& shape) {
  return const_dims(row_major_strides(to_shape(shape)));
}

// out[i, j] = data[index[i, j], j] for axis 0, and so on.
Tensors import_gather_elements(Call& c) {
  const Tensor& data = c.in(0);
  const Tensor& index = c.in(1);
  c.check(index.rank() == data.rank() && data.rank() > 0, "an index of ", index.rank(),
          " axes into ", data.rank());
  const int64_t axis = axis_of(c.attr("axis", 0), data.rank());
  const Ints strides = strides_for(dims_of(data));
  const Checked checked = checked_index(index, dim_of(data, axis));
  Tensor at = checked.index * number_int(checked.index, strides[static_cast<size_t>(axis)]);
  for (int64_t i = 0; i < data.rank(); ++i) {
    if (i == axis) continue;
    c.check(dim_of(index, i) <= dim_of(data, i), "the index has shape ", list_text(dims_of(index)),
            ", the data ", list_text(dims_of(data)));
    const Tensor place = positions(c.context(), kInt64, dim_of(index, i), i, data.rank());
    at = at + place * number_int(place, strides[static_cast<size_t>(i)]);
  }
  return {gather_flat(data, at, checked.valid)};
}

// The last axis of the index holds coordinates into the axes after the batch.
Tensors import_gather_nd(Call& c) {
  const Tensor& data = c.in(0);
  const Tensor& index = c.in(1);
  const int64_t batch = c.attr("batch_dims", 0);
  c.check(index.rank() >= 1 && batch >= 0 && batch < index.rank() && batch < data.rank(),
          "batch_dims = ", batch);
  const int64_t depth = dim_of(index, -1);
  c.check(depth + batch <= data.rank(), depth, " coordinates into ", data.rank(), " axes");
  const Ints dims = dims_of(data);
  // Positions count slices of what the coordinates leave.
  Ints head(dims.begin(), dims.begin() + batch + depth);
  const Ints strides = strides_for(head);
  Ints shape = dims_of(index);
  shape.pop_back();
  Tensor at = full(c.context(), kInt64, to_shape(shape), 0);
  Tensor valid = full(c.context(), kBool, to_shape(shape), 1);
  for (int64_t i = 0; i < batch; ++i) {
    const Tensor place = positions(c.context(), kInt64, shape[static_cast<size_t>(i)], i,
                                   static_cast<int64_t>(shape.size()));
    at = at + place * number_int(place, strides[static_cast<size_t>(i)]);
  }
  for (int64_t i = 0; i < depth; ++i) {
    const auto axis = static_cast<size_t>(batch + i);
    const Tensor column = reshape(slice_axis(index, -1, i, i + 1), to_shape(shape));
    const Checked checked = checked_index(column, dims[axis]);
    at = at + checked.index * number_int(at, strides[axis]);
    valid = bit_and(valid, checked.valid);
  }
  Ints rows{element_count(head, "a gather")};
  rows.insert(rows.end(), dims.begin() + batch + depth, dims.end());
  const Tensor checked = where(valid, at, number_int(at, -1));
  return {data.with(make_gather(reshape(data, to_shape(rows)).node(), checked.node(), 0))};
}

// on where the position is the index, off elsewhere; an index out of range is nowhere.
Tensors import_one_hot(Call& c) {
  const Tensor& index = c.in(0);
  const int64_t depth = c.integer(1);
  c.check(depth >= 0, "a depth of ", depth);
  const int64_t axis = axis_of(c.attr("axis", -1), index.rank() + 1);
  const Tensor wide = cast(index, kInt64);
  const Tensor wrapped = unsqueeze(
      where(less(wide, number_int(wide, 0)), wide + number_int(wide, depth), wide), {axis});
  const Tensor hit = equal(wrapped, positions(c.context(), kInt64, depth, axis, index.rank() + 1));
  const Tensor& values = c.in(2);
  c.check(dims_of(values) == Ints{2}, "values of shape ", list_text(dims_of(values)));
  const Tensor off = reshape(slice_axis(values, 0, 0, 1), {});
  const Tensor on = reshape(slice_axis(values, 0, 1, 2), {});
  return {where(hit, on, off)};
}

// The first sequence_lens[b] elements of every sequence b, backwards.
Tensors import_reverse_sequence(Call& c) {
  const Tensor& x = c.in(0);
  const int64_t batch = axis_of(c.attr("batch_axis", 1), x.rank());
  const int64_t time = axis_of(c.attr("time_axis", 0), x.rank());
  c.check(batch != time && dim_of(c.in(1), 0) == dim_of(x, batch), "sequence_lens of shape ",
          list_text(dims_of(c.in(1))), " for ", list_text(dims_of(x)));
  Ints shape(static_cast<size_t>(x.rank()), 1);
  shape[static_cast<size_t>(batch)] = dim_of(x, batch);
  const Tensor lengths = reshape(cast(c.in(1), kInt64), to_shape(shape));
  const Tensor place = positions(c.context(), kInt64, dim_of(x, time), time, x.rank());
  const Tensor from = where(less(place, lengths), lengths - number_int(place, 1) - place, place);
  const Ints strides = strides_for(dims_of(x));
  Tensor at = from * number_int(from, strides[static_cast<size_t>(time)]);
  for (int64_t i = 0; i < x.rank(); ++i) {
    if (i == time) continue;
    const Tensor p = positions(c.context(), kInt64, dim_of(x, i), i, x.rank());
    at = at + p * number_int(p, strides[static_cast<size_t>(i)]);
  }
  const Tensor zero = number_int(from, 0);
  const Tensor valid =
      bit_and(less_equal(zero, from), less(from, number_int(from, dim_of(x, time))));
  return {gather_flat(x, at, expand(valid, at.shape()))};
}

// Elements whose condition, known now, is true.
Tensors import_compress(Call& c) {
  Tensor x = c.in(0);
  int64_t axis = 0;
  if (c.has_attribute("axis"))
    axis = axis_of(c.attr("axis"), x.rank());
  else
    x = flatten(x);
  const Ints condition = c.ints(1);
  Ints kept;
  for (size_t i = 0; i < condition.size(); ++i)
    if (condition[i]) kept.push_back(static_cast<int64_t>(i));
  return {take(x, kept, axis)};
}

// Coordinates of the elements of a value known now that are not 0.
Tensors import_non_zero(Call& c) {
  const Tensor& x = c.in(0);
  const Ints dims = dims_of(x);
  const Ints strides = strides_for(dims);
  const std::vector<double> values = c.reals(0);
  std::vector<Ints> rows(dims.size());
  int64_t count = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] == 0) continue;
    ++count;
    for (size_t k = 0; k < dims.size(); ++k)
      rows[k].push_back(static_cast<int64_t>(i) / strides[k] % dims[k]);
  }
  Ints all;
  for (const Ints& row : rows) all.insert(all.end(), row.begin(), row.end());
  return {reshape(c.constant(all), to_shape({static_cast<int64_t>(dims.size()), count}))};
}

constexpr int64_t kNow = kNewestOpset;

// clang-format off
constexpr Row kRows[] = {
    {"Gather",          1,  kNow, import_gather},
    {"GatherElements",  11, kNow, import_gather_elements},
    {"GatherND",        11, kNow, import_gather_nd},
    {"OneHot",          9,  kNow, import_one_hot, operand(1)},
    {"ReverseSequence", 10, kNow, import_reverse_sequence},
    {"Compress",        9,  kNow, import_compress, operand(1)},
    {"NonZero",         9,  kNow, import_non_zero, operand(0)},
};
// clang-format on

}  // namespace

std::span<const Row> indexing_rows() {
  return kRows;
}

}  // namespace tiny::onnx
