// Normalizations: by stored statistics, or by those of the data.
#include <cmath>

#include "base/error.h"
#include "onnx/import/functions.h"
#include "onnx/import/table.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/movement.h"
#include "tensor/normalization.h"
#include "tensor/reduce.h"

namespace tiny::onnx {

namespace {

// One value per channel, as axis 1 of a tensor with `rank` axes.
Tensor per_channel(const Tensor& v, int64_t rank) {
  require(v.rank() == 1, Status::InvalidModel, "a value per channel has ", v.rank(), " axes");
  Ints shape(static_cast<size_t>(std::max<int64_t>(rank, 2)), 1);
  shape[1] = dim_of(v, 0);
  if (rank == 1) shape = {dim_of(v, 0)};
  return reshape(v, to_shape(shape));
}

Ints axes_from(int64_t first, int64_t rank) {
  Ints axes;
  for (int64_t i = first; i < rank; ++i) axes.push_back(i);
  return axes;
}

// What statistics are computed in.
Tensor widened(const Tensor& x) {
  return x.dtype().bits() < 32 ? cast(x, kFloat32) : x;
}

Tensor normalized(const Tensor& x, const Moments& m, double epsilon) {
  return (x - m.mean) * rsqrt(m.variance + number(m.variance, epsilon));
}

// ---- Batches.

// (x - mean) * scale / sqrt(variance + epsilon) + bias, with the factors of a channel together, so
// that stored statistics leave one multiplication and one addition.
Tensor batch_normalized(const Tensor& x, const Tensor& scale, const Tensor& bias,
                        const Tensor& mean, const Tensor& variance, double epsilon) {
  const Tensor factor = scale / sqrt(variance + number(variance, epsilon));
  const Tensor rest = bias - mean * factor;
  const int64_t rank = x.rank();
  return cast(widened(x) * per_channel(factor, rank) + per_channel(rest, rank), x.dtype());
}

Tensors stored_statistics(Call& c) {
  c.refuse_outputs(1);
  const Tensor& x = c.in(0);
  c.check(x.rank() >= 2, "it takes two axes or more; got ", x.rank());
  c.check(dims_of(c.in(1)) == Ints{dim_of(x, 1)}, "scale has the shape ", c.in(1).shape(), " for ",
          dim_of(x, 1), " channels");
  return {batch_normalized(x, widened(c.in(1)), widened(c.in(2)), widened(c.in(3)),
                           widened(c.in(4)), c.real_attr("epsilon", 1e-5f))};
}

// Before version 9; a node that names the running statistics trains.
Tensors import_batch_normalization_old(Call& c) {
  const bool testing = c.version() >= 7 || c.flag("is_test", false);
  if (!testing && c.wants(1)) c.unsupported("training (is_test = 0) is not supported");
  if (!c.flag("spatial", true)) {
    const Tensor& x = c.in(0);
    c.refuse_outputs(1);
    const Tensor inverse = rsqrt(c.in(4) + number(c.in(4), c.real_attr("epsilon", 1e-5f)));
    return {(x - c.in(3)) * inverse * c.in(1) + c.in(2)};
  }
  return stored_statistics(c);
}

Tensors import_batch_normalization(Call& c) {
  if (!c.flag("training_mode", false)) return stored_statistics(c);
  const Tensor& x = c.in(0);
  c.check(x.rank() >= 2, "it takes two axes or more; got ", x.rank());
  Ints axes = axes_from(2, x.rank());
  axes.insert(axes.begin(), 0);
  const Moments m = moments(widened(x), axes);
  const Tensor mean = reshape(m.mean, to_shape({dim_of(x, 1)}));
  const Tensor variance = reshape(m.variance, to_shape({dim_of(x, 1)}));
  const Tensor y = batch_normalized(x, widened(c.in(1)), widened(c.in(2)), mean, variance,
                                    c.real_attr("epsilon", 1e-5f));
  const double momentum = c.real_attr("momentum", 0.9f);
  const auto running = [&](const Tensor& stored, const Tensor& fresh) {
    const Tensor wide = widened(stored);
    return cast(wide * number(wide, momentum) + fresh * number(fresh, 1 - momentum),
                stored.dtype());
  };
  return {y, running(c.in(3), mean), running(c.in(4), variance)};
}

// ---- One sample at a time.

Tensors import_instance_normalization(Call& c) {
  const Tensor& x = c.in(0);
  c.check(x.rank() >= 3, "it takes three axes or more; got ", x.rank());
  const Tensor wide = widened(x);
  const Tensor n =
      normalized(wide, moments(wide, axes_from(2, x.rank())), c.real_attr("epsilon", 1e-5f));
  return {
      cast(n * per_channel(widened(c.in(1)), x.rank()) + per_channel(widened(c.in(2)), x.rank()),
           x.dtype())};
}

Tensors import_group_normalization(Call& c) {
  const Tensor& x = c.in(0);
  const int64_t groups = c.attr("num_groups");
  c.check(x.rank() >= 2 && groups > 0 && dim_of(x, 1) % groups == 0, dim_of(x, 1), " channels in ",
          groups, " groups");
  const Tensor wide = reshape(widened(x), {size_of(x, 0), groups, -1});
  const Tensor n = normalized(wide, moments(wide, {2}), c.real_attr("epsilon", 1e-5f));
  Tensor scale = widened(c.in(1));
  Tensor bias = widened(c.in(2));
  // Before version 21 there is a scale per group.
  if (c.version() < 21) {
    const Shape spread = to_shape({groups, dim_of(x, 1) / groups});
    scale = flatten(expand(unsqueeze(scale, {1}), spread));
    bias = flatten(expand(unsqueeze(bias, {1}), spread));
  }
  return {cast(reshape(n, x.shape()) * per_channel(scale, x.rank()) + per_channel(bias, x.rank()),
               x.dtype())};
}

Tensors import_layer_normalization(Call& c) {
  const Tensor& x = c.in(0);
  const int64_t axis = axis_of(c.attr("axis", -1), x.rank());
  const Tensor wide = cast(x, c.dtype_attr("stash_type", kFloat32));
  const Moments m = moments(wide, axes_from(axis, x.rank()));
  const Tensor inverse = rsqrt(m.variance + number(m.variance, c.real_attr("epsilon", 1e-5f)));
  Tensor y = cast((wide - m.mean) * inverse, x.dtype()) * c.in(1);
  if (c.has(2)) y = y + c.in(2);
  return {y, m.mean, inverse};
}

Tensors import_rms_normalization(Call& c) {
  const Tensor& x = c.in(0);
  const int64_t axis = axis_of(c.attr("axis", -1), x.rank());
  const Tensor wide = cast(x, c.dtype_attr("stash_type", kFloat32));
  const Tensor power = mean(square(wide), axes_from(axis, x.rank()), true);
  const Tensor inverse = rsqrt(power + number(power, c.real_attr("epsilon", 1e-5f)));
  return {cast(wide * inverse, x.dtype()) * c.in(1)};
}

Tensors import_mean_variance_normalization(Call& c) {
  const Tensor& x = c.in(0);
  const Ints axes = axes_of(c.ints_attr("axes", {0, 2, 3}), x.rank());
  const Moments m = moments(x, axes);
  return {(x - m.mean) / (sqrt(m.variance) + number(x, 1e-9))};
}

Tensors import_lp_normalization(Call& c) {
  const Tensor& x = c.in(0);
  const Ints axis{axis_of(c.attr("axis", -1), x.rank())};
  const int64_t p = c.attr("p", 2);
  c.check(p == 1 || p == 2, "the attribute p is ", p);
  const Tensor norm = p == 1 ? sum(abs(x), axis, true) : sqrt(sum(square(x), axis, true));
  // A vector of zeros stays one.
  return {where(equal(norm, number(norm, 0.0)), number(x, 0.0), x / norm)};
}

Tensors import_lrn(Call& c) {
  const Tensor& x = c.in(0);
  c.check(x.rank() >= 2, "it takes two axes or more; got ", x.rank());
  const int64_t size = c.attr("size");
  c.check(size > 0, "the attribute size is ", size);
  return {lrn(x, size, c.real_attr("alpha", 1e-4f), c.real_attr("beta", 0.75f),
              c.real_attr("bias", 1.0f))};
}

constexpr int64_t kNow = kNewestOpset;

// clang-format off
constexpr Row kRows[] = {
    {"BatchNormalization",        1,  8,    import_batch_normalization_old},
    {"BatchNormalization",        9,  13,   stored_statistics},
    {"BatchNormalization",        14, kNow, import_batch_normalization},
    {"InstanceNormalization",     1,  kNow, import_instance_normalization},
    {"GroupNormalization",        18, kNow, import_group_normalization},
    {"LayerNormalization",        17, kNow, import_layer_normalization},
    {"RMSNormalization",          23, kNow, import_rms_normalization},
    {"MeanVarianceNormalization", 9,  kNow, import_mean_variance_normalization},
    {"LpNormalization",           1,  kNow, import_lp_normalization},
    {"LRN",                       1,  kNow, import_lrn},
};
// clang-format on

}  // namespace

std::span<const Row> normalization_rows() {
  return kRows;
}

}  // namespace tiny::onnx
