// Reductions, positions of extremes, and running sums.
#include "base/error.h"
#include "onnx/import/functions.h"
#include "onnx/import/table.h"
#include "tensor/activation.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"

namespace tiny::onnx {

namespace {

using Reduction = Tensor (*)(const Tensor&, const Ints&, bool);

// Every reduction keeps the operand's dtype.
Tensor reduce_sum(const Tensor& x, const Ints& axes, bool keep) {
  return sum_same(x, axes, keep);
}

Tensor reduce_prod(const Tensor& x, const Ints& axes, bool keep) {
  return x.dtype().is_float() ? prod(x, axes, keep) : reduce_as_is(x, Op::Mul, axes, keep);
}

Tensor reduce_mean(const Tensor& x, const Ints& axes, bool keep) {
  if (x.dtype().is_float()) return mean(x, axes, keep);
  const Tensor count = size_tensor(x.context_ref(), reduced_count(x, axes));
  const Tensor total = reduce_as_is(cast(x, kInt64), Op::Add, axes, keep);
  return cast(trunc_div(total, count), x.dtype());
}

// What gives a float for integers too is rounded back towards zero.
Tensor in_floats(const Tensor& x) {
  return x.dtype().is_float() ? x : cast(x, kFloat64);
}

Tensor reduce_l1(const Tensor& x, const Ints& axes, bool keep) {
  return sum_same(abs(x), axes, keep);
}

Tensor reduce_sum_square(const Tensor& x, const Ints& axes, bool keep) {
  return sum_same(square(x), axes, keep);
}

Tensor reduce_l2(const Tensor& x, const Ints& axes, bool keep) {
  return cast(sqrt(sum(square(in_floats(x)), axes, keep)), x.dtype());
}

Tensor reduce_log_sum(const Tensor& x, const Ints& axes, bool keep) {
  return cast(log(sum(in_floats(x), axes, keep)), x.dtype());
}

Tensor reduce_log_sum_exp(const Tensor& x, const Ints& axes, bool keep) {
  return cast(logsumexp(in_floats(x), axes, keep), x.dtype());
}

Ints every_axis_of(const Tensor& x) {
  Ints axes;
  for (int64_t i = 0; i < x.rank(); ++i) axes.push_back(i);
  return axes;
}

// Axes are an attribute before version 18 (13 for the sum), an input from there on.
template <Reduction kReduce, int64_t kFirstWithInput = 18>
Tensors import_reduce(Call& c) {
  const Tensor& x = c.in(0);
  const bool keep = c.flag("keepdims", true);
  Ints axes;
  if (c.version() < kFirstWithInput)
    axes = c.ints_attr("axes", {});
  else if (c.has(1))
    axes = c.ints(1);
  if (axes.empty() && !c.flag("noop_with_empty_axes", false)) axes = every_axis_of(x);
  return {kReduce(x, axes_of(axes, x.rank()), keep)};
}

// ---- Positions.

using PositionFunction = Tensor (*)(const Tensor&, int64_t, bool, bool);

template <PositionFunction kFunction>
Tensors import_position(Call& c) {
  const Tensor& x = c.in(0);
  return {kFunction(x, axis_of(c.attr("axis", 0), x.rank()), c.flag("keepdims", true),
                    c.flag("select_last_index", false))};
}

// 1 at the first maximum, 0 elsewhere.
Tensor hardmax(const Tensor& x, int64_t axis) {
  const Tensor place = positions(x.context_ref(), kInt64, size_of(x, axis), axis, x.rank());
  return cast(equal(place, argmax(x, axis, true)), x.dtype());
}

// ---- Softmax and its relatives.

using AxisFunction = Tensor (*)(const Tensor&, int64_t);

template <AxisFunction kFunction>
Tensors import_along_axis(Call& c) {
  const Tensor& x = c.in(0);
  if (x.rank() == 0) return {reshape(kFunction(unsqueeze(x, {0}), 0), Shape())};
  return {kFunction(x, axis_of(c.attr("axis", -1), x.rank()))};
}

// Before version 13 all axes from `axis` on count as one.
template <AxisFunction kFunction>
Tensors import_flattened(Call& c) {
  const Tensor& x = c.in(0);
  const int64_t axis = axis_of(c.attr("axis", 1), x.rank());
  const TensorShape dims = x.shape();
  const tiny::Dim rows = product(Shape(dims.begin(), dims.begin() + axis));
  const tiny::Dim columns = product(Shape(dims.begin() + axis, dims.end()));
  return {reshape(kFunction(reshape(x, {rows, columns}), 1), dims)};
}

// ---- Running sums and products.

Tensors import_cum_sum(Call& c) {
  const Tensor& x = c.in(0);
  const Tensor total = cumsum(x, axis_of(c.integer(1), x.rank()), c.flag("exclusive", false),
                              c.flag("reverse", false));
  return {cast(total, x.dtype())};
}

// Every element is the product of those that stand before it; what stands after counts as 1.
Tensors import_cum_prod(Call& c) {
  const Tensor& x = c.in(0);
  const int64_t axis = axis_of(c.integer(1), x.rank());
  const tiny::Dim n = size_of(x, axis);
  const Tensor to = positions(c.context(), kInt64, n, axis, x.rank() + 1);
  const Tensor from = positions(c.context(), kInt64, n, axis + 1, x.rank() + 1);
  const bool reverse = c.flag("reverse", false);
  const Tensor& low = reverse ? to : from;
  const Tensor& high = reverse ? from : to;
  const Tensor taken = c.flag("exclusive", false) ? less(low, high) : less_equal(low, high);
  const Tensor spread = where(taken, unsqueeze(x, {axis}), number_int(x, 1));
  return {reduce_as_is(spread, Op::Mul, {axis + 1}, false)};
}

constexpr int64_t kNow = kNewestOpset;

// clang-format off
constexpr Row kRows[] = {
    {"ReduceSum",       1,  kNow, import_reduce<reduce_sum, 13>,      operand(1)},
    {"ReduceProd",      1,  kNow, import_reduce<reduce_prod>,         operand(1)},
    {"ReduceMean",      1,  kNow, import_reduce<reduce_mean>,         operand(1)},
    {"ReduceMax",       1,  kNow, import_reduce<max>,                 operand(1)},
    {"ReduceMin",       1,  kNow, import_reduce<min>,                 operand(1)},
    {"ReduceL1",        1,  kNow, import_reduce<reduce_l1>,           operand(1)},
    {"ReduceL2",        1,  kNow, import_reduce<reduce_l2>,           operand(1)},
    {"ReduceLogSum",    1,  kNow, import_reduce<reduce_log_sum>,      operand(1)},
    {"ReduceLogSumExp", 1,  kNow, import_reduce<reduce_log_sum_exp>,  operand(1)},
    {"ReduceSumSquare", 1,  kNow, import_reduce<reduce_sum_square>,   operand(1)},
    {"ArgMax",          1,  kNow, import_position<argmax>},
    {"ArgMin",          1,  kNow, import_position<argmin>},
    {"Softmax",         1,  12,   import_flattened<softmax>},
    {"Softmax",         13, kNow, import_along_axis<softmax>},
    {"LogSoftmax",      1,  12,   import_flattened<log_softmax>},
    {"LogSoftmax",      13, kNow, import_along_axis<log_softmax>},
    {"Hardmax",         1,  12,   import_flattened<hardmax>},
    {"Hardmax",         13, kNow, import_along_axis<hardmax>},
    {"CumSum",          11, kNow, import_cum_sum,                     operand(1)},
    {"CumProd",         26, kNow, import_cum_prod,                    operand(1)},
};
// clang-format on

}  // namespace

std::span<const Row> reduction_rows() {
  return kRows;
}

}  // namespace tiny::onnx
