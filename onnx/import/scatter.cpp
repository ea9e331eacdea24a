// Elements written to places that other elements name, and sorting.  Every result is what the last
// (or all) of the writers to it leave: a comparison of places, not a store.
#include "base/error.h"
#include "onnx/import/functions.h"
#include "onnx/import/table.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/joining.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"

namespace tiny::onnx {

namespace {

// Places along an axis of n elements: negative ones counted from the end, one out of range ends the
// run with Error{Index}.
Tensor checked_places(const Tensor& index, int64_t n) {
  return gather(arange(index.context_ref(), kInt64, n), cast(index, kInt64), 0);
}

// data [n, k] with updates [m, k] written to the rows that places [m, k or 1] name; -1 is no place.
Tensor scattered(const Call& c, const Tensor& data, const Tensor& places, const Tensor& updates,
                 const std::string& reduction) {
  const int64_t n = dim_of(data, 0);
  const int64_t m = dim_of(updates, 0);
  if (m == 0) return data;
  // [n, m, k]
  const Tensor row = positions(c.context(), kInt64, n, 0, 3);
  const Tensor hit = equal(unsqueeze(places, {0}), row);
  const Tensor given = unsqueeze(updates, {0});
  const auto folded = [&](Op op, const Tensor& neutral) {
    return reduce_as_is(where(hit, given, neutral), op, {1}, false);
  };
  const DType dtype = data.dtype();
  if (reduction == "add") return data + folded(Op::Add, number_int(given, 0));
  if (reduction == "mul") return data * folded(Op::Mul, number_int(given, 1));
  if (reduction == "max")
    return maximum(data, folded(Op::Max, full_bits(c.context(), dtype, {}, lowest_bits(dtype))));
  if (reduction == "min")
    return minimum(data, folded(Op::Min, full_bits(c.context(), dtype, {}, highest_bits(dtype))));
  c.check(reduction == "none", "the attribute reduction is \"", reduction, "\"");
  const Tensor writer = positions(c.context(), kInt64, m, 1, 3);
  const Tensor last = max(where(hit, writer, number_int(writer, -1)), {1});
  const Tensor none = less(last, number_int(last, 0));
  const Tensor safe = where(none, number_int(last, 0), last);
  const Tensor wide = expand(safe, to_shape({n, dim_of(updates, 1)}));
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

Tensors import_scatter_elements(Call& c) {
  const Tensor& data = c.in(0);
  const Tensor& updates = c.in(2);
  const int64_t axis = axis_of(c.attr("axis", 0), data.rank());
  c.check(dims_of(c.in(1)) == dims_of(updates) && updates.rank() == data.rank(),
          "indices of shape ", c.in(1).shape(), " for updates of shape ", updates.shape());
  Tensor places = checked_places(c.in(1), dim_of(data, axis));
  // Where the updates are shorter than the data, nothing is written.
  Ints none(static_cast<size_t>(data.rank()), 0), more = none;
  for (int64_t i = 0; i < data.rank(); ++i) {
    if (i == axis) continue;
    more[static_cast<size_t>(i)] = dim_of(data, i) - dim_of(updates, i);
    c.check(more[static_cast<size_t>(i)] >= 0, "updates of shape ", updates.shape(),
            " for data of shape ", data.shape());
  }
  const Tensor inside =
      pad(full(c.context(), kBool, updates.shape(), 1), to_shape(none), to_shape(more));
  places = where(inside, pad(places, to_shape(none), to_shape(more)), number_int(places, -1));
  const Ints order = order_with_first(axis, data.rank());
  const auto as_rows = [&](const Tensor& t) {
    const Tensor moved = permute(t, order);
    return reshape(moved, to_shape({dim_of(moved, 0), element_count(dims_of(moved), "data") /
                                                          std::max<int64_t>(1, dim_of(moved, 0))}));
  };
  const Tensor moved = permute(data, order);
  const Tensor rows = scattered(c, as_rows(data), as_rows(places),
                                as_rows(pad(updates, to_shape(none), to_shape(more))),
                                c.text_attr("reduction", "none"));
  return {permute(reshape(rows, moved.shape()), inverse(order))};
}

Tensors import_scatter_nd(Call& c) {
  const Tensor& data = c.in(0);
  const Tensor& index = c.in(1);
  c.check(index.rank() >= 1 && dim_of(index, -1) <= data.rank(), "indices of shape ", index.shape(),
          " into ", data.rank(), " axes");
  const int64_t depth = dim_of(index, -1);
  const Ints dims = dims_of(data);
  Ints outer = dims_of(index);
  outer.pop_back();
  const int64_t writes = element_count(outer, "indices");
  int64_t rows = 1;
  Tensor place = full(c.context(), kInt64, to_shape({writes}), 0);
  const Tensor columns = reshape(index, to_shape({writes, depth}));
  for (int64_t i = 0; i < depth; ++i) {
    const int64_t n = dims[static_cast<size_t>(i)];
    rows *= n;
    const Tensor along = checked_places(squeeze(slice_axis(columns, 1, i, i + 1), {1}), n);
    place = place * number_int(place, n) + along;
  }
  const int64_t inner = rows == 0 ? 0 : element_count(dims, "data") / rows;
  const Tensor out =
      scattered(c, reshape(data, to_shape({rows, inner})), unsqueeze(place, {1}),
                reshape(c.in(2), to_shape({writes, inner})), c.text_attr("reduction", "none"));
  return {reshape(out, data.shape())};
}

// A cache with the update written from a place of its own for each sample on.
Tensors import_tensor_scatter(Call& c) {
  const Tensor& cache = c.in(0);
  const Tensor& update = c.in(1);
  const int64_t rank = cache.rank();
  const int64_t axis = axis_of(c.attr("axis", -2), rank);
  const std::string mode = c.text_attr("mode", "linear");
  c.check(axis > 0 && (mode == "linear" || mode == "circular"), "axis ", axis, ", mode \"", mode,
          "\"");
  const int64_t n = dim_of(cache, axis);
  const int64_t m = dim_of(update, axis);
  c.check(m > 0 && m <= n, "an update of ", m, " elements for ", n);
  Ints shape(static_cast<size_t>(rank), 1);
  shape[0] = dim_of(cache, 0);
  const Tensor start = c.has(2) ? reshape(cast(c.in(2), kInt64), to_shape(shape))
                                : full(c.context(), kInt64, to_shape(shape), 0);
  // Which element of the update stands at each place of the cache.
  Tensor from = positions(c.context(), kInt64, n, axis, rank) - start;
  if (mode == "circular") from = floor_mod(from, number_int(from, n));
  const Tensor written =
      bit_and(less_equal(number_int(from, 0), from), less(from, number_int(from, m)));
  const Tensor safe = expand(where(written, from, number_int(from, 0)), cache.shape());
  return {where(written, take_along_axis(update, safe, axis), cache)};
}

// The output of a max pool back at its places, zeros elsewhere.
Tensors import_max_unpool(Call& c) {
  const Tensor& x = c.in(0);
  c.check(x.rank() >= 3 && dims_of(c.in(1)) == dims_of(x), "indices of shape ", c.in(1).shape(),
          " for ", x.shape());
  const auto axes = static_cast<size_t>(x.rank() - 2);
  const Ints kernel = c.ints_attr("kernel_shape", {});
  const Ints strides = c.ints_attr("strides", Ints(axes, 1));
  const Ints pads = c.ints_attr("pads", Ints(2 * axes, 0));
  c.check(kernel.size() == axes && strides.size() == axes && pads.size() == 2 * axes,
          "the attributes kernel_shape, strides and pads");
  Ints natural{dim_of(x, 0), dim_of(x, 1)};
  for (size_t i = 0; i < axes; ++i)
    natural.push_back((dim_of(x, static_cast<int64_t>(i) + 2) - 1) * strides[i] + kernel[i] -
                      pads[i] - pads[axes + i]);
  const Ints shape = c.has(2) ? c.ints(2) : natural;
  c.check(shape.size() == natural.size(), "an output shape ", list_text(shape));
  for (size_t i = 0; i < shape.size(); ++i)
    c.check(shape[i] >= natural[i], "an output shape ", list_text(shape), " below ",
            list_text(natural));
  // The indices count in the natural shape; a given one only adds room at the ends.
  const int64_t count = element_count(natural, "an output");
  const int64_t given = element_count(dims_of(x), "an input");
  const Tensor zeros = full(c.context(), x.dtype(), to_shape({count, 1}), 0);
  const Tensor out = scattered(c, zeros, unsqueeze(checked_places(flatten(c.in(1)), count), {1}),
                               reshape(x, to_shape({given, 1})), "none");
  Ints more;
  for (size_t i = 0; i < shape.size(); ++i) more.push_back(shape[i] - natural[i]);
  return {pad(reshape(out, to_shape(natural)), to_shape(Ints(shape.size(), 0)), to_shape(more))};
}

// ---- The greatest or lowest k.

// Whether a stands before b in descending order; a NaN counts as the greatest.
Tensor greater_total(const Tensor& a, const Tensor& b) {
  const Tensor more = less(b, a);
  if (!a.dtype().is_float()) return more;
  return bit_or(more, bit_and(is_nan(a), invert(is_nan(b))));
}

Tensors top(Call& c, int64_t k, bool largest) {
  const Tensor& x = c.in(0);
  c.check(x.rank() > 0, "it takes one axis or more");
  const int64_t axis = axis_of(c.attr("axis", -1), x.rank());
  const int64_t n = dim_of(x, axis);
  c.check(k >= 0 && k <= n, "k = ", k, " of ", n, " elements");
  const Tensor moved = transpose(x, axis, -1);
  const int64_t rank = moved.rank() + 1;
  // How many elements stand before each: [.., n, n] counted over the last axis.
  const Tensor self = unsqueeze(moved, {rank - 1});
  const Tensor other = unsqueeze(moved, {rank - 2});
  const Tensor before = largest ? greater_total(other, self) : greater_total(self, other);
  const Tensor after = largest ? greater_total(self, other) : greater_total(other, self);
  const Tensor earlier = less(positions(c.context(), kInt64, n, rank - 1, rank),
                              positions(c.context(), kInt64, n, rank - 2, rank));
  const Tensor first = bit_or(before, bit_and(invert(bit_or(before, after)), earlier));
  const Tensor place = reduce_as_is(cast(first, kInt64), Op::Add, {-1}, false);
  // Of the elements, the one whose place is 0, 1, .. k-1.
  const Tensor hit =
      equal(unsqueeze(place, {rank - 2}), positions(c.context(), kInt64, k, rank - 2, rank));
  const Tensor which = positions(c.context(), kInt64, n, rank - 1, rank);
  const Tensor index = reduce_as_is(where(hit, which, number_int(which, 0)), Op::Add, {-1}, false);
  return {transpose(take_along_axis(moved, index, -1), axis, -1), transpose(index, axis, -1)};
}

Tensors import_top_k_attribute(Call& c) {
  return top(c, c.attr("k"), true);
}
Tensors import_top_k(Call& c) {
  return top(c, c.integer(1), c.flag("largest", true));
}

constexpr int64_t kNow = kNewestOpset;

// clang-format off
constexpr Row kRows[] = {
    {"Scatter",         9,  10,   import_scatter_elements},
    {"ScatterElements", 11, kNow, import_scatter_elements},
    {"ScatterND",       11, kNow, import_scatter_nd},
    {"TensorScatter",   24, kNow, import_tensor_scatter},
    {"MaxUnpool",       9,  kNow, import_max_unpool, operand(2)},
    {"TopK",            1,  9,    import_top_k_attribute},
    {"TopK",            10, kNow, import_top_k, operand(1)},
};
// clang-format on

}  // namespace

std::span<const Row> scatter_rows() {
  return kRows;
}

}  // namespace tiny::onnx
