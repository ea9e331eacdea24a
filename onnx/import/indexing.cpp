// Elements chosen by other elements.
#include "tensor/indexing.h"
#include "base/error.h"
#include "onnx/import/functions.h"
#include "onnx/import/table.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"

namespace tiny::onnx {

namespace {

Tensors import_gather(Call& c) {
  return {gather(c.in(0), c.in(1), c.attr("axis", 0))};
}

Ints strides_for(const Ints& shape) {
  return const_dims(row_major_strides(to_shape(shape)));
}

Tensors import_gather_elements(Call& c) {
  const Tensor& data = c.in(0);
  return {take_along_axis(data, c.in(1), axis_of(c.attr("axis", 0), data.rank()))};
}

Tensors import_gather_nd(Call& c) {
  return {gather_nd(c.in(0), c.in(1), c.attr("batch_dims", 0))};
}

Tensors import_one_hot(Call& c) {
  const int64_t depth = c.integer(1);
  c.check(depth >= 0, "a depth of ", depth);
  const Tensor& values = c.in(2);
  c.check(dims_of(values) == Ints{2}, "values of shape ", list_text(dims_of(values)));
  const Tensor off = reshape(slice_axis(values, 0, 0, 1), Shape());
  const Tensor on = reshape(slice_axis(values, 0, 1, 2), Shape());
  const Tensor index = cast(c.in(0), kInt64);
  return {one_hot(index, depth, on, off, axis_of(c.attr("axis", -1), index.rank() + 1))};
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
