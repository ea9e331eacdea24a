// Reductions, which keep the operand's dtype, positions of extremes, and running sums.
#include "base/error.h"
#include "onnx/import/functions.h"
#include "onnx/import/import.h"
#include "onnx/import/table.h"
#include "tensor/activation.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"
#include "tensor/scan.h"

namespace tiny::onnx {

namespace {

using Reduction = Tensor (*)(const Tensor&, const Ints&, bool);

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
  const bool keeps_all = c.flag("noop_with_empty_axes", false);
  if (axes.empty() && !keeps_all) axes = every_axis(x.rank());
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

// By a function that has to know how many elements there are; of as many as the run finds it is
// that of as many as there can be, filled up with what changes nothing; where nothing bounds them
// they lie along the last axis, whose sums are made of blocks, however many.
template <Tensor (*accumulate)(const Tensor&, int64_t, bool, bool)>
Tensors import_running(Call& c, double neutral) {
  Tensor x = c.in(0);
  const int64_t axis = axis_of(c.integer(1), x.rank());
  const tiny::Dim size = x.shape()[static_cast<size_t>(axis)];
  const bool is_open = c.importer().is_open(size);
  const bool is_computed = c.importer().is_computed(size) && !is_open;
  if (is_computed) {
    Shape more(static_cast<size_t>(x.rank()), tiny::Dim(0));
    const Shape none = more;
    more[static_cast<size_t>(axis)] = tiny::Dim(upper_bound(size)) - size;
    x = pad(x, none, more, neutral);
  }
  if (is_open) x = transpose(x, axis, -1);
  Tensor total =
      accumulate(x, is_open ? -1 : axis, c.flag("exclusive", false), c.flag("reverse", false));
  if (is_computed) total = slice_axis(total, axis, 0, size);
  if (is_open) total = transpose(total, axis, -1);
  return {cast(total, x.dtype())};
}

Tensors import_cum_sum(Call& c) {
  return import_running<cumsum>(c, 0);
}

Tensors import_cum_prod(Call& c) {
  return import_running<cumprod>(c, 1);
}

constexpr int64_t kNow = kNewestOpset;

// clang-format off
constexpr Row kRows[] = {
    {"ReduceSum",       1,  kNow, import_reduce<sum_in_dtype, 13>,      operand(1)},
    {"ReduceProd",      1,  kNow, import_reduce<prod_in_dtype>,         operand(1)},
    {"ReduceMean",      1,  kNow, import_reduce<mean_in_dtype>,         operand(1)},
    {"ReduceMax",       1,  kNow, import_reduce<max>,                 operand(1)},
    {"ReduceMin",       1,  kNow, import_reduce<min>,                 operand(1)},
    {"ReduceL1",        1,  kNow, import_reduce<l1_norm_in_dtype>,           operand(1)},
    {"ReduceL2",        1,  kNow, import_reduce<l2_norm_in_dtype>,           operand(1)},
    {"ReduceLogSum",    1,  kNow, import_reduce<log_sum_in_dtype>,      operand(1)},
    {"ReduceLogSumExp", 1,  kNow, import_reduce<logsumexp_in_dtype>,  operand(1)},
    {"ReduceSumSquare", 1,  kNow, import_reduce<sum_square_in_dtype>,   operand(1)},
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
