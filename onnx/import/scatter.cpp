// Elements written to places that other elements name, and the greatest or lowest k.
#include "tensor/scatter.h"

#include "base/error.h"
#include "onnx/import/functions.h"
#include "onnx/import/import.h"
#include "onnx/import/table.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/movement.h"
#include "tensor/top_k.h"

namespace tiny::onnx {

namespace {

Fold fold_of(const Call& c) {
  const std::string reduction = c.text_attr("reduction", "none");
  if (reduction == "add") return Fold::Add;
  if (reduction == "mul") return Fold::Mul;
  if (reduction == "max") return Fold::Max;
  if (reduction == "min") return Fold::Min;
  c.check(reduction == "none", "the attribute reduction is \"", reduction, "\"");
  return Fold::None;
}

Tensors import_scatter_elements(Call& c) {
  return {scatter_elements(c.in(0), places(c, 1), c.in(2), c.attr("axis", 0), fold_of(c))};
}

Tensors import_scatter_nd(Call& c) {
  return {scatter_nd(c.in(0), places(c, 1), c.in(2), fold_of(c))};
}

// A cache with the update written from a place of its own for each sample on.
Tensors import_tensor_scatter(Call& c) {
  const Tensor& cache = c.in(0);
  const int64_t axis = axis_of(c.attr("axis", -2), cache.rank());
  const std::string mode = c.text_attr("mode", "linear");
  c.check(axis > 0 && (mode == "linear" || mode == "circular"), "axis ", axis, ", mode \"", mode,
          "\"");
  const Tensor start = c.in_or(2, full(c.context(), kInt64, {size_of(cache, 0)}, 0));
  return {scatter_slices(cache, c.in(1), start, axis, mode == "circular")};
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
  Ints more;
  for (size_t i = 0; i < shape.size(); ++i) more.push_back(shape[i] - natural[i]);
  return {pad(scatter_flat(x, c.in(1), natural), to_shape(Ints(shape.size(), 0)), to_shape(more))};
}

Tensors top(const Call& c, const tiny::Dim& k, bool largest) {
  const Tensor& x = c.in(0);
  c.check(x.rank() > 0, "it takes one axis or more");
  c.pass_over({"sorted"});  // they are
  const int64_t axis = axis_of(c.attr("axis", -1), x.rank());
  // What is sorted is as many as there may be: of what inputs leave free no more than twice those
  // that there are.
  for (const tiny::Dim& size : {size_of(x, axis), k})
    if (!c.importer().is_computed(size) && upper_bound(size) > 2 * lower_bound(size)) size.value();
  const TopK made = top_k(x, k, axis, largest);
  return {made.values, made.indices};
}

Tensors import_top_k_attribute(Call& c) {
  return top(c, c.attr("k"), true);
}
Tensors import_top_k(Call& c) {
  const Tensor& x = c.in(0);
  const tiny::Dim size = x.rank() == 0 ? 1 : size_of(x, axis_of(c.attr("axis", -1), x.rank()));
  const Shape k = c.sizes(1, [&](size_t, const Tensor& wanted) {
    const Tensor count = minimum(wanted, size_tensor(c.context(), size));
    return c.importer().computed_size(count, size, c.node());
  });
  c.check(k.size() == 1, "k of shape ", c.in(1).shape());
  return top(c, k.front(), c.flag("largest", true));
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
