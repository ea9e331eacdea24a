// Elements that data chooses, as many as it chooses: sizes that the run computes.
#include "onnx/import/selection.h"
#include "base/error.h"
#include "onnx/import/functions.h"
#include "onnx/import/import.h"
#include "onnx/import/table.h"
#include "onnx/import/text_function.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/joining.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"
#include "tensor/scan.h"
#include "tensor/scatter.h"
#include "tensor/unique.h"

namespace tiny::onnx {

Tensor first_elements(const Tensor& x, const tiny::Dim& count) {
  const tiny::Dim n = x.shape()[0], most = upper_bound(n);
  return shrink(pad(x, {0}, {most - n}), {0}, {count});
}

Tensor counted_places(Call& c, const Tensor& mask) {
  const Chosen chosen = chosen_places(mask);
  return first_elements(chosen.places,
                        c.importer().computed_size(chosen.count, mask.shape()[0], c.node()));
}

namespace {

Ints strides_for(const Ints& shape) {
  return const_dims(row_major_strides(to_shape(shape)));
}

// Elements whose condition is true; it may be shorter than the axis.
Tensors import_compress(Call& c) {
  Tensor x = c.in(0);
  int64_t axis = 0;
  if (c.has_attribute("axis"))
    axis = axis_of(c.attr("axis"), x.rank());
  else
    x = flatten(x);
  if (!c.known(1)) {
    c.check(c.in(1).rank() == 1, "a condition of shape ", c.in(1).shape());
    return {gather(x, counted_places(c, cast(c.in(1), kBool)), axis)};
  }
  const Ints condition = c.ints(1);
  Ints kept;
  for (size_t i = 0; i < condition.size(); ++i)
    if (condition[i]) kept.push_back(static_cast<int64_t>(i));
  return {index_select(x, kept, axis)};
}

// Coordinates of the elements that are not 0.
Tensors import_non_zero(Call& c) {
  const Tensor& x = c.in(0);
  if (!c.known(0)) {
    const Tensor places = counted_places(c, not_equal(flatten(x), number_int(c, 0)));
    Tensors rows;
    tiny::Dim stride = 1;
    for (int64_t axis = x.rank(); axis-- > 0;) {
      const Tensor size = size_tensor(c.context(), x.shape()[static_cast<size_t>(axis)]);
      const Tensor above = floor_div(places, size_tensor(c.context(), stride));
      rows.insert(rows.begin(), axis == 0 ? above : floor_mod(above, size));
      stride = stride * x.shape()[static_cast<size_t>(axis)];
    }
    // A number has no axes, and so nothing says where it is.
    if (rows.empty()) return {full(c.context(), kInt64, {0, places.shape()[0]}, 0)};
    return {stack(rows, 0)};
  }
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

// The different parts of x along an axis, where each is first, which of them each is, and how often
// it is there.
Tensors different(Call& c, Tensor x, int64_t axis, bool by_place) {
  const auto along = static_cast<size_t>(axis);
  // Of as many rows as the run finds all that there may be are compared, where something bounds
  // them.
  const tiny::Dim present = x.shape()[along];
  const bool is_found = c.importer().is_computed(present);
  const bool is_bounded = is_found && !c.importer().is_open(present);
  if (is_bounded) {
    Shape more(x.shape().size(), tiny::Dim(0));
    more[along] = upper_bound(present) - present;
    x = contiguous(pad(x, Shape(more.size(), tiny::Dim(0)), more));
  }
  const tiny::Dim n = is_found ? x.shape()[along] : tiny::Dim(dim_of(x, axis));
  if (is_text(c, 0)) c.set_carried(0, kTextType);
  if (n.is(0)) {
    const Tensor none = full(c.context(), kInt64, {0}, 0);
    return {x, none, none, none};
  }
  Tensor rows = move_axis(is_text(c, 0) ? text_ranks(c, x) : x, axis, 0);
  if (x.rank() > 1) rows = flatten(rows, 1);
  const Unique found =
      unique(rows, by_place, is_bounded ? size_tensor(c.context(), present) : Tensor());
  const int64_t least = is_found ? 0 : 1;
  const tiny::Dim count = c.importer().computed_size(found.count, n, c.node(), least);
  const Tensor first = first_elements(found.first, count);
  return {gather(x, first, axis), first, shrink(found.inverse, {0}, {present}),
          first_elements(found.counts, count)};
}

Tensors import_unique(Call& c) {
  const Tensor& x = c.in(0);
  const bool by_place = !c.flag("sorted", true);
  if (!c.has_attribute("axis")) return different(c, flatten(x), 0, by_place);
  return different(c, x, axis_of(c.attr("axis"), x.rank()), by_place);
}

// Of a list, in the order in which they come, and without where each is first.
Tensors import_contributed_unique(Call& c) {
  c.check(c.in(0).rank() == 1, "it takes one axis; got shape ", c.in(0).shape());
  const Tensors made = different(c, c.in(0), 0, true);
  return {made[0], made[2], made[3]};
}

// ---- Tokens of sequences of several lengths, without what fills the shorter ones up.

// Tokens [batch, steps, size] and how many of each sequence count: these in one row after the
// other, the places of all (first of those that count), where each sequence begins, and the length
// of the longest.
Tensors import_remove_padding(Call& c) {
  const Tensor& x = c.in(0);
  c.check(x.rank() == 3 && c.in(1).rank() == 1, "it takes [batch, steps, size] and [batch]; got ",
          x.shape(), " and ", c.in(1).shape());
  const tiny::Dim batch = x.shape()[0], steps = x.shape()[1], all = batch * steps;
  const Tensor lengths = cast(c.in(1), kInt64);
  const Tensor step = reshape(arange(c.context(), kInt64, steps), {1, steps});
  const Tensor counts = flatten(less(step, reshape(lengths, {batch, 1})));
  const Chosen tokens = chosen_places(counts), others = chosen_places(invert(counts));
  const Tensor place = arange(c.context(), kInt64, all);
  const Tensor behind = maximum(place - tokens.count, number_int(c, 0));
  const Tensor offsets =
      where(less(place, tokens.count), tokens.places, gather(others.places, behind, 0));
  const Tensor ends = concat(std::vector{full(c.context(), kInt64, {1}, 0), cumsum(lengths, 0)}, 0);
  const Tensor rows = reshape(x, {all, x.shape()[2]});
  return {gather(rows, counted_places(c, counts), 0),
          cast(reshape(offsets, {batch, steps}), kInt32), cast(ends, kInt32),
          cast(reshape(max(lengths, {0}), {1}), kInt32)};
}

// The same backwards: zeros where no token is.
Tensors import_restore_padding(Call& c) {
  const Tensor &x = c.in(0), &offsets = c.in(1);
  c.check(x.rank() == 2 && offsets.rank() == 2, "it takes [tokens, size] and [batch, steps]; got ",
          x.shape(), " and ", offsets.shape());
  const tiny::Dim batch = offsets.shape()[0], steps = offsets.shape()[1], size = x.shape()[1];
  const Tensor places = shrink(flatten(cast(offsets, kInt64)), {0}, {x.shape()[0]});
  const Tensor zeros = full(c.context(), x.dtype(), {batch * steps, size}, 0);
  const Tensor rows = scatter_nd(zeros, unsqueeze(places, {1}), x);
  return {reshape(rows, {batch, steps, size})};
}

constexpr int64_t kNow = kNewestOpset;

// clang-format off
constexpr Row kRows[] = {
    {"Compress",          9,  kNow, import_compress},
    {"NonZero",           9,  kNow, import_non_zero},
    {"RemovePadding",     1,  1,    import_remove_padding, 0, nullptr, kContributed},
    {"RestorePadding",    1,  1,    import_restore_padding, 0, nullptr, kContributed},
    {"Unique",            11, kNow, import_unique},
    {"Unique",            1,  1,    import_contributed_unique, 0, nullptr, kContributed},
};
// clang-format on

}  // namespace

std::span<const Row> selection_rows() {
  return kRows;
}

}  // namespace tiny::onnx
