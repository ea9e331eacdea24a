// Rows that read and write elements by their places: index, gather, scatter, sort, what is found
// where. What a result's size depends on (nonzero, masked_select, masks as indices) is computed at
// once.
#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/WrapDimUtils.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>

#include "call.h"
#include "checks.h"
#include "computed.h"

namespace tiny_torch {

namespace {

using V = Value;

// A tensor without dimensions as one of one element, for operators with an axis.
V with_axis(const V& a) {
  const int64_t one = 1;
  return a.rank() ? a : reshape(a, {&one, 1});
}
V like(const V& a, const V& shape) {
  return reshape(a, shape.shape());
}
int64_t axis_of(const Call& c, size_t index, const V& a) {
  return at::maybe_wrap_dim(c.integer(index), a.rank());
}

void concat_all(Call& c) {  // tensors, dim
  std::vector<V> parts;
  const at::Tensor& out = c.target(0);
  for (const at::Tensor& tensor : c.argument(0).toTensorVector())
    if (!(tensor.dim() == 1 && tensor.size(0) == 0))
      parts.push_back(cast(read(tensor), dtype_of(out.scalar_type())));
  if (parts.empty()) return;
  const int64_t axis = at::maybe_wrap_dim(c.integer(1), parts[0].rank());
  c.give(0, parts.size() == 1 ? parts[0] : concat(parts, axis));
}
void flip_axes(Call& c) {  // self, dims
  const V a = c.value(0);
  Sizes axes = c.ints(1);
  for (int64_t& axis : axes) axis = at::maybe_wrap_dim(axis, a.rank());
  std::sort(axes.begin(), axes.end());
  TORCH_CHECK(std::adjacent_find(axes.begin(), axes.end()) == axes.end(),
              "dim appears multiple times in the list of dims");
  at::Tensor made = at::empty_like(c.tensor(0), at::MemoryFormat::Preserve);
  write(made, a.rank() ? flip(a, axes) : a);
  c.give(0, std::move(made));
}
V rolled(const V& a, int64_t axis, int64_t shift) {
  const int64_t size = a.size(axis);
  if (size == 0) return a;
  const int64_t cut = ((size - shift) % size + size) % size;
  if (cut == 0) return a;
  const V parts[] = {slice_axis(a, axis, cut, size), slice_axis(a, axis, 0, cut)};
  return concat(parts, axis);
}
void roll(Call& c) {  // self, shifts, dims
  V a = c.value(0);
  const Sizes shifts = c.ints(1);
  const Sizes axes = c.ints(2);
  TORCH_CHECK(!shifts.empty(), "`shifts` required");
  if (axes.empty()) {
    TORCH_CHECK(shifts.size() == 1, "shifts and dimensions must align. shifts: ", shifts.size(),
                ", dims:0");
    const int64_t count = a.numel();
    return c.give(0, like(rolled(reshape(a, {&count, 1}), 0, shifts[0]), a));
  }
  TORCH_CHECK(shifts.size() == axes.size(),
              "shifts and dimensions must align. shifts: ", shifts.size(), ", dims:", axes.size());
  TORCH_CHECK_INDEX(a.rank() > 0, "Dimension specified as ", axes[0],
                    " but tensor has no dimensions");
  for (size_t i = 0; i < axes.size(); ++i)
    a = rolled(a, at::maybe_wrap_dim(axes[i], a.rank()), shifts[i]);
  c.give(0, a);
}

// ---- Reading ------------------------------------------------------------------------------------

V whole(const V& index) {
  return cast(index, TINY_INT64);
}

void check_range_along(const Call& c) {  // self, dim, index
  const at::Tensor& self = c.tensor(0);
  const int64_t dim = at::maybe_wrap_dim(c.integer(1), self.dim());
  const int64_t size = self.dim() ? self.size(dim) : 1;
  const auto beyond = index_beyond(c.tensor(2), 0, size);
  TORCH_CHECK(!beyond, "index ", *beyond, " is out of bounds for dimension ", dim, " with size ",
              size);
}

// Of operators that read where they have written already.
void refuse_overlap(const Call& c, size_t index) {
  if (!c.target(0).defined()) return;
  at::assert_no_overlap(c.target(0), c.tensor(0));
  at::assert_no_overlap(c.target(0), c.tensor(index));
}

void select_rows(Call& c) {  // self, dim, index
  TORCH_CHECK_INDEX(c.tensor(2).dim() <= 1, "index_select(): Index is supposed to be a vector");
  TORCH_CHECK(c.tensor(2).scalar_type() == at::kLong || c.tensor(2).scalar_type() == at::kInt,
              "index_select(): Expected dtype int32 or int64 for index");
  const auto beyond =
      index_beyond(c.tensor(2), 0, c.tensor(0).dim() ? c.tensor(0).size(c.integer(1)) : 1);
  TORCH_CHECK_INDEX(!beyond, "index out of range in self");
  const V self = c.operand(0);
  const V a = with_axis(self);
  const V rows =
      gather(a, with_axis(whole(c.value(2))), at::maybe_wrap_dim(c.integer(1), a.rank()));
  c.give(0, self.rank() ? rows : reshape(rows, {}));
}
void gather_along(Call& c) {  // self, dim, index
  refuse_overlap(c, 2);
  check_dtype_of_out(c.target(0), c.tensor(0).scalar_type());
  check_range_along(c);
  const V index = c.value(2);
  if (index.numel() == 0) return c.give(0, full(c.value(0).dtype(), index.shape(), 0));
  const V a = with_axis(c.value(0));
  c.give(0, like(take_along_axis(a, with_axis(whole(index)), axis_of(c, 1, a)), index));
}
V positions_of(const V& flags) {  // of what is true, row-major, [n, rank]
  const Sizes shape = flags.shape();
  std::vector<uint8_t> memory(static_cast<size_t>(flags.numel()));
  flush();
  if (!memory.empty()) read(cast(flags, TINY_BOOL), memory.data(), memory.size());
  std::vector<int64_t> found;
  for (size_t i = 0; i < memory.size(); ++i) {
    if (!memory[i]) continue;
    found.resize(found.size() + shape.size());
    auto rest = static_cast<int64_t>(i);
    for (size_t axis = shape.size(); axis-- > 0; rest /= shape[axis])
      found[found.size() - shape.size() + axis] = rest % shape[axis];
  }
  const auto count = shape.empty() ? static_cast<int64_t>(!memory.empty() && memory[0])
                                   : static_cast<int64_t>(found.size() / shape.size());
  const int64_t sizes[] = {count, static_cast<int64_t>(shape.size())};
  return from_data(TINY_INT64, sizes, found.data(), found.size() * sizeof(int64_t));
}
void nonzero(Call& c) {
  check_dtype_of_out(c.target(0), at::kLong);
  c.give(0, positions_of(c.value(0)));
}
void select_by_mask(Call& c) {  // self, mask
  TORCH_CHECK(c.tensor(1).scalar_type() == at::kBool,
              "masked_select: expected BoolTensor for mask");
  refuse_overlap(c, 1);
  const auto sizes = at::infer_size(c.tensor(0).sizes(), c.tensor(1).sizes());
  const Sizes shape(sizes.begin(), sizes.end());
  const V a = expand(c.value(0), shape);
  const int64_t count = a.numel();
  const V places = positions_of(reshape(expand(c.value(1), shape), {&count, 1}));
  const int64_t found = places.size(0);
  c.give(0, gather(reshape(a, {&count, 1}), reshape(places, {&found, 1}), 0));
}
void take(Call& c) {  // self, index
  refuse_overlap(c, 1);
  const V a = c.value(0);
  const int64_t count = a.numel();
  const auto beyond = index_beyond(c.tensor(1), -count, count);
  TORCH_CHECK_INDEX(!beyond, "out of range: tried to access index ", *beyond, " on a tensor of ",
                    count, " elements.");
  c.give(0, gather(reshape(a, {&count, 1}), whole(c.value(1)), 0));
}

// ---- Indices of several axes --------------------------------------------------------------------

// What indices choose: the indexed axes in front as one, the places in it, and how the result lies.
struct Choice {
  V rows;       // [product of the indexed axes, rest..]
  V places;     // int64, the shape that the indices broadcast to
  Sizes order;  // self's axes, those with an index first
  Sizes shape;  // of self in that order
  size_t indexed = 0;
  int64_t first = 0;  // where the axes of `places` stand in a result
};

void check_range(const at::Tensor& index, int64_t axis, int64_t size) {
  TORCH_CHECK_INDEX(size != 0 || index.numel() == 0,
                    "index is out of bounds for dimension with size 0");
  const auto beyond = index_beyond(index, -size, size);
  TORCH_CHECK_INDEX(!beyond, "index ", *beyond, " is out of bounds for dimension ", axis,
                    " with size ", size);
}

std::vector<V> indices_of(const Call& c, size_t argument, std::vector<int64_t>& axes) {
  const at::Tensor& self = c.tensor(0);
  std::vector<V> indices;
  int64_t axis = 0;
  for (const c10::IValue& item : c.argument(argument).toListRef()) {
    if (item.isNone() || !item.toTensor().defined()) {
      ++axis;
      continue;
    }
    const at::Tensor& index = item.toTensor();
    const V value = index.is_privateuseone() ? read(index) : read(index.to(c.tensor(0).device()));
    if (value.dtype() != TINY_BOOL && value.dtype() != TINY_UINT8) {
      if (axis < self.dim()) check_range(index, axis, self.size(axis));
      indices.push_back(whole(value));
      axes.push_back(axis++);
      continue;
    }
    const V found = positions_of(value);
    const int64_t count = found.size(0);
    for (int64_t k = 0; k < value.rank(); ++k) {
      indices.push_back(reshape(slice_axis(found, 1, k, k + 1), {&count, 1}));
      axes.push_back(axis++);
    }
  }
  return indices;
}

void warn_of_bytes(const Call& c, size_t argument) {
  for (const c10::IValue& item : c.argument(argument).toListRef())
    if (item.isTensor() && item.toTensor().defined() &&
        item.toTensor().scalar_type() == at::kByte) {
      TORCH_WARN(
          "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool "
          "instead.");
    }
}

bool broadcasts(at::IntArrayRef a, at::IntArrayRef b) {
  for (size_t i = 1; i <= std::min(a.size(), b.size()); ++i) {
    const int64_t first = a[a.size() - i];
    const int64_t second = b[b.size() - i];
    if (first != second && first != 1 && second != 1) return false;
  }
  return true;
}

Choice choose(const Call& c, size_t argument) {
  std::vector<int64_t> axes;
  const std::vector<V> indices = indices_of(c, argument, axes);
  const V self = c.value(0);
  TORCH_CHECK_INDEX(static_cast<int64_t>(axes.size()) <= self.rank(),
                    "too many indices for tensor of dimension ", self.rank());
  at::DimVector places;
  for (const V& index : indices) {
    const Sizes shape = index.shape();
    TORCH_CHECK_INDEX(
        places.empty() || broadcasts(places, shape),
        "shape mismatch: indexing tensors could not be broadcast together with shapes ",
        at::IntArrayRef(places), ", ", at::IntArrayRef(shape));
    places = at::infer_size_dimvector(places, shape);
  }
  Choice choice;
  choice.order = axes;
  choice.indexed = axes.size();
  for (int64_t axis = 0; axis < self.rank(); ++axis)
    if (std::find(axes.begin(), axes.end(), axis) == axes.end()) choice.order.push_back(axis);
  for (const int64_t axis : choice.order) choice.shape.push_back(self.size(axis));
  const bool is_one_block =
      axes.empty() || axes.back() - axes.front() + 1 == static_cast<int64_t>(axes.size());
  choice.first = is_one_block && !axes.empty() ? axes.front() : 0;
  Sizes rows{1};
  rows.insert(rows.end(), choice.shape.begin() + static_cast<std::ptrdiff_t>(axes.size()),
              choice.shape.end());
  for (size_t k = 0; k < axes.size(); ++k) {
    const int64_t size = choice.shape[k];
    rows[0] *= size;
    const V index =
        where(compare(TINY_LT, indices[k], 0), indices[k] + static_cast<double>(size), indices[k]);
    choice.places = k ? choice.places * static_cast<double>(size) + index : index;
  }
  choice.rows = reshape(permute(self, choice.order), rows);
  return choice;
}

// The axes of a result of places and rest, and back from one.
Sizes placed_order(const Choice& choice, int64_t rest, bool is_back) {
  const int64_t chosen = choice.places.rank();
  Sizes order;
  if (is_back) {
    for (int64_t i = 0; i < chosen; ++i) order.push_back(choice.first + i);
    for (int64_t i = 0; i < choice.first; ++i) order.push_back(i);
    for (int64_t i = choice.first; i < rest; ++i) order.push_back(i + chosen);
  } else {
    for (int64_t i = 0; i < choice.first; ++i) order.push_back(chosen + i);
    for (int64_t i = 0; i < chosen; ++i) order.push_back(i);
    for (int64_t i = choice.first; i < rest; ++i) order.push_back(chosen + i);
  }
  return order;
}

void index(Call& c) {  // self, indices
  const Choice choice = choose(c, 1);
  const int64_t rest = choice.rows.rank() - 1;
  c.give(0, permute(gather(choice.rows, choice.places, 0), placed_order(choice, rest, false)));
}
void index_put(Call& c) {  // self, indices, values, accumulate
  warn_of_repeats(c.tensor(0), "index_put_");
  at::assert_no_overlap(c.tensor(0), c.tensor(2));
  // Eager code and TorchScript's make lists of different types of the same indices.
  for (const c10::IValue& index : c.argument(1).toListRef())
    if (!index.isNone() && index.toTensor().defined())
      at::assert_no_overlap(c.tensor(0), index.toTensor());
  warn_of_bytes(c, 1);  // index, which reads, is warned of before it comes here
  const Choice choice = choose(c, 1);
  const int64_t rest = choice.rows.rank() - 1;
  const int64_t count = choice.places.numel();
  if (count == 0) return;
  Sizes shape = choice.places.shape();
  Sizes updates{count};
  const Sizes rows = choice.rows.shape();
  shape.insert(shape.end(), rows.begin() + 1, rows.end());
  updates.insert(updates.end(), rows.begin() + 1, rows.end());
  Sizes result;
  for (const int64_t axis : placed_order(choice, rest, false))
    result.push_back(shape[static_cast<size_t>(axis)]);
  TORCH_CHECK(at::is_expandable_to(c.tensor(2).sizes(), result),
              "shape mismatch: value tensor of shape ", c.tensor(2).sizes(),
              " cannot be broadcast to indexing result of shape ", at::IntArrayRef(result));
  const V values = expand(cast(c.value(2), choice.rows.dtype()), result);
  const V ordered = reshape(permute(values, placed_order(choice, rest, true)), updates);
  const int64_t column[] = {count, 1};
  const V written = onnx("ScatterND", {choice.rows, reshape(choice.places, column), ordered},
                         c.flag(3) ? R"({"reduction":"add"})" : R"({"reduction":"none"})");
  Sizes back(choice.order.size());
  for (size_t i = 0; i < back.size(); ++i)
    back[static_cast<size_t>(choice.order[i])] = static_cast<int64_t>(i);
  write(c.tensor(0), permute(reshape(written, choice.shape), back));
}

// ---- Writing along an axis ----------------------------------------------------------------------

V scattered(const V& given, int64_t axis, const V& index_given, const V& source_given,
            const std::string& reduction) {
  if (index_given.numel() == 0) return given;
  const V a = with_axis(given);
  const V index = with_axis(whole(index_given));
  V source = cast(source_given, a.dtype());
  if (source.rank() == 0 && index_given.rank()) {
    source = expand(source, index.shape());
  } else {
    source = with_axis(source);
    if (source.shape() != index.shape())
      source = slice(source, Sizes(static_cast<size_t>(index.rank()), 0), index.shape(), {});
  }
  const std::string attributes = R"({"axis":)" +
                                 std::to_string(at::maybe_wrap_dim(axis, a.rank())) +
                                 R"(,"reduction":")" + reduction + "\"}";
  return like(onnx("ScatterElements", {a, index, source}, attributes.c_str()), given);
}
V number_like(const Call& c, size_t index, const V& a) {
  return value_of_number(c.argument(index).toScalar(), a.dtype());
}
std::string reduction_of(const Call& c, size_t index) {
  const std::string name = c.argument(index).toStringRef();
  return name == "multiply" ? "mul" : name;
}
void scatter_tensor(Call& c) {
  check_range_along(c);
  c.give(0, scattered(c.value(0), c.integer(1), c.value(2), c.value(3), "none"));
}
void scatter_number(Call& c) {
  check_range_along(c);
  c.give(0, scattered(c.value(0), c.integer(1), c.value(2), number_like(c, 3, c.value(0)), "none"));
}
void scatter_add(Call& c) {
  check_range_along(c);
  c.give(0, scattered(c.value(0), c.integer(1), c.value(2), c.value(3), "add"));
}
void scatter_tensor_by(Call& c) {
  check_range_along(c);
  c.give(0, scattered(c.value(0), c.integer(1), c.value(2), c.value(3), reduction_of(c, 4)));
}
void scatter_number_by(Call& c) {
  check_range_along(c);
  c.give(0, scattered(c.value(0), c.integer(1), c.value(2), number_like(c, 3, c.value(0)),
                      reduction_of(c, 4)));
}
void scatter_reduced(Call& c) {  // self, dim, index, src, reduce, include_self
  check_range_along(c);
  const V self = c.value(0);
  const V index = c.value(2);
  const V source = c.value(3);
  const std::string name = c.argument(4).toStringRef();
  const bool is_mean = name == "mean";
  const std::string kind = name == "sum" || is_mean ? "add"
                           : name == "prod"         ? "mul"
                           : name == "amax"         ? "max"
                                                    : "min";
  V base = self;
  const int64_t axis = c.integer(1);
  if (!c.flag(5)) {  // what is written begins without the old element
    const double neutral = kind == "mul" ? 1 : 0;
    V first = constant(self.dtype(), neutral);
    if (kind == "max" || kind == "min") first = scattered(self, axis, index, source, "none");
    base = first.rank() == self.rank() && (kind == "max" || kind == "min")
               ? first
               : scattered(self, axis, index, first, "none");
  }
  V result = scattered(base, axis, index, source, kind);
  if (is_mean) {
    const V counts = scattered(full(self.dtype(), self.shape(), c.flag(5) ? 1 : 0), axis, index,
                               constant(self.dtype(), 1), "add");
    const V divisor = where(compare(TINY_EQ, counts, 0), constant(self.dtype(), 1), counts);
    result = self.is_float() ? result / divisor : binary(TINY_FLOOR_DIV, result, divisor);
  }
  c.give(0, result);
}

// An index of one axis as one of all, for what is given in whole rows.
V row_index(const V& index, const V& rows, int64_t axis) {
  Sizes shape(static_cast<size_t>(rows.rank()), 1);
  shape[static_cast<size_t>(axis)] = index.numel();
  return expand(reshape(whole(index), shape), rows.shape());
}
void add_rows_at(Call& c) {  // self, dim, index, source, alpha
  const V a = with_axis(c.value(0));
  V source = with_axis(c.value(3));
  if (c.argument(4).toScalar().toDouble() != 1) source = source * number_like(c, 4, source);
  const int64_t axis = at::maybe_wrap_dim(c.integer(1), a.rank());
  TORCH_CHECK_INDEX(!index_beyond(c.tensor(2), 0, a.size(axis)), "index out of range in self");
  c.give(0,
         like(scattered(a, axis, row_index(c.value(2), source, axis), source, "add"), c.value(0)));
}
void copy_rows_at(Call& c) {  // self, dim, index, source
  const V a = with_axis(c.value(0));
  const V source = with_axis(c.value(3));
  const int64_t axis = at::maybe_wrap_dim(c.integer(1), a.rank());
  const auto beyond = index_beyond(c.tensor(2), 0, a.size(axis));
  TORCH_CHECK_INDEX(!beyond, "index_copy_(): index ", *beyond, " is out of bounds for dimension ",
                    axis, " with size ", a.size(axis));
  c.give(0,
         like(scattered(a, axis, row_index(c.value(2), source, axis), source, "none"), c.value(0)));
}
void fill_rows(Call& c, const V& value) {  // self, dim, index, value
  warn_of_repeats(c.tensor(0), "index_fill_");
  at::assert_no_overlap(c.tensor(0), c.tensor(2));
  const V a = with_axis(c.value(0));
  const int64_t axis = at::maybe_wrap_dim(c.integer(1), a.rank());
  check_range(c.tensor(2), axis, a.size(axis));
  Sizes shape = a.shape();
  shape[static_cast<size_t>(axis)] = c.value(2).numel();
  const V source = expand(cast(value, a.dtype()), shape);
  write(c.tensor(0),
        like(scattered(a, axis, row_index(c.value(2), source, axis), source, "none"), c.value(0)));
}
void embedding_backward(Call& c) {  // grad, indices, num_weights, padding_idx, scale_grad_by_freq
  const V grad = c.value(0);
  const V given = whole(c.value(1));
  const int64_t rows = c.integer(2);
  const int64_t width = grad.size(-1);
  const int64_t count = given.numel();
  const int64_t column[] = {count, 1};
  const int64_t lines[] = {count, width};
  const int64_t table[] = {rows, width};
  const V places = reshape(given, column);
  V updates = cast(reshape(grad, lines), wide(grad.dtype()));
  if (count == 0) return c.give(0, full(grad.dtype(), table, 0));
  if (c.integer(3) >= 0)
    updates = where(compare(TINY_EQ, places, static_cast<double>(c.integer(3))),
                    constant(updates.dtype(), 0), updates);
  if (c.flag(4)) {
    const V ones = full(updates.dtype(), {&count, 1}, 1);
    const V counts = onnx("ScatterND", {full(updates.dtype(), {&rows, 1}, 0), places, ones},
                          R"({"reduction":"add"})");
    updates = updates / gather(counts, places, 0);
  }
  c.give(0, cast(onnx("ScatterND", {full(updates.dtype(), table, 0), places, updates},
                      R"({"reduction":"add"})"),
                 grad.dtype()));
}

// ---- Order --------------------------------------------------------------------------------------

void give_sorted(Call& c, const V& given, int64_t count, int64_t dim, bool is_largest) {
  const V a = with_axis(given.dtype() == TINY_BOOL ? cast(given, TINY_UINT8) : given);
  const std::string attributes = R"({"axis":)" + std::to_string(at::maybe_wrap_dim(dim, a.rank())) +
                                 R"(,"largest":)" + (is_largest ? "1" : "0") + R"(,"sorted":1})";
  const V inputs[] = {a, full(TINY_INT64, Sizes{1}, static_cast<double>(count))};
  const std::vector<V> both = onnx("TopK", inputs, attributes.c_str(), 2);
  for (size_t i = 0; i < 2; ++i) c.give(i, given.rank() ? both[i] : reshape(both[i], {}));
}
void sort(Call& c) {  // self, stable, dim, descending
  const V a = c.value(0);
  if (a.numel() == 0) {
    c.give(0, a);
    return c.give(1, full(TINY_INT64, a.shape(), 0));
  }
  give_sorted(c, a, with_axis(a).size(at::maybe_wrap_dim(c.integer(2), with_axis(a).rank())),
              c.integer(2), c.flag(3));
}
void top(Call& c) {
  give_sorted(c, c.value(0), c.integer(1), c.integer(2), c.flag(3));
}

constexpr Row kPositions[] = {
    {"cat.out", concat_all},
    {"flip", flip_axes},
    {"roll", roll},
    {"index_select", select_rows},
    {"index_select.out", select_rows},
    {"gather.out", gather_along},
    {"nonzero", nonzero},
    {"nonzero.out", nonzero},
    {"masked_select", select_by_mask},
    {"masked_select.out", select_by_mask},
    {"take", take},
    {"take.out", take},
    {"index.Tensor_out", index},
    {"_index_put_impl_", index_put},
    {"scatter.src_out", scatter_tensor},
    {"scatter.value_out", scatter_number},
    {"scatter.reduce_out", scatter_tensor_by},
    {"scatter.value_reduce_out", scatter_number_by},
    {"scatter_add.out", scatter_add},
    {"scatter_reduce.two_out", scatter_reduced},
    {"index_add.out", add_rows_at},
    {"index_copy.out", copy_rows_at},
    {"index_fill_.int_Scalar", [](Call& c) { fill_rows(c, number_like(c, 3, c.value(0))); }},
    {"index_fill_.int_Tensor", [](Call& c) { fill_rows(c, c.value(3)); }},
    {"embedding_dense_backward", embedding_backward},
    {"sort.values_stable", sort},
    {"topk.values", top},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  add_rows(m, kPositions);
}

TORCH_LIBRARY_FRAGMENT(tiny, m) {
  // What is written shares no element with itself or with what is read for it.
  m.def("refuse_overlap(Tensor self, Tensor[] others) -> ()",
        [](const at::Tensor& self, const std::vector<at::Tensor>& others) {
          at::assert_no_internal_overlap(self);
          for (const at::Tensor& other : others) at::assert_no_overlap(self, other);
        });
}

}  // namespace

std::optional<int64_t> index_beyond(const at::Tensor& index, int64_t least, int64_t size,
                                    std::optional<int64_t> ignored) {
  if (index.numel() > kCheckedElementsMax || !index.is_privateuseone() || !is_computed(index))
    return std::nullopt;
  const V value = whole(read_operand(index));
  std::vector<int64_t> memory(static_cast<size_t>(index.numel()));
  if (!memory.empty()) read(value, memory.data(), memory.size() * sizeof(int64_t));
  const auto found = std::find_if(memory.begin(), memory.end(), [&](int64_t at) {
    return (at < least || at >= size) && at != ignored;
  });
  if (found == memory.end()) return std::nullopt;
  return *found;
}

}  // namespace tiny_torch
