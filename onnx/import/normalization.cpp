// Normalizations: by stored statistics, or by those of the data.
#include "tensor/normalization.h"

#include "base/error.h"
#include "onnx/import/functions.h"
#include "onnx/import/table.h"
#include "tensor/movement.h"

namespace tiny::onnx {

namespace {

double epsilon_of(const Call& c) {
  return static_cast<double>(c.real_attr("epsilon", 1e-5f));
}

// ---- Batches.

Tensors stored_statistics(Call& c) {
  c.refuse_outputs(1);
  return {batch_norm_folded(c.in(0), c.in(1), c.in(2), c.in(3), c.in(4), epsilon_of(c))};
}

// Before version 9; a node that names the running statistics trains.
Tensors import_batch_normalization_old(Call& c) {
  const bool testing = c.version() >= 7 || c.flag("is_test", false);
  if (!testing && c.wants(1)) c.unsupported("training (is_test = 0) is not supported");
  if (c.flag("spatial", true)) return stored_statistics(c);
  c.refuse_outputs(1);
  return {batch_norm_elementwise(c.in(0), c.in(1), c.in(2), c.in(3), c.in(4), epsilon_of(c))};
}

Tensors import_batch_normalization(Call& c) {
  c.pass_over({"momentum"});  // but for training
  if (!c.flag("training_mode", false)) return stored_statistics(c);
  const RunningBatchNorm made =
      batch_norm_training(c.in(0), c.in(1), c.in(2), c.in(3), c.in(4), epsilon_of(c),
                          static_cast<double>(c.real_attr("momentum", 0.9f)));
  return {made.y, made.running_mean, made.running_var};
}

// ---- One sample at a time.

Tensors import_instance_normalization(Call& c) {
  return {instance_norm(c.in(0), c.in(1), c.in(2), epsilon_of(c))};
}

Tensors import_group_normalization(Call& c) {
  c.pass_over({"stash_type"});
  const Tensor& x = c.in(0);
  const int64_t groups = c.attr("num_groups");
  Tensor scale = c.in(1);
  Tensor bias = c.in(2);
  // Before version 21 there is a scale per group.
  if (c.version() < 21) {
    const int64_t channels = dim_of(x, 1);
    c.check(groups > 0 && channels % groups == 0, channels, " channels in ", groups, " groups");
    const Shape spread = to_shape({groups, channels / groups});
    scale = flatten(expand(unsqueeze(scale, {1}), spread));
    bias = flatten(expand(unsqueeze(bias, {1}), spread));
  }
  return {group_norm(x, groups, scale, bias, epsilon_of(c))};
}

Tensors import_layer_normalization(Call& c) {
  const StagedLayerNorm made =
      layer_norm_staged(c.in(0), c.in(1), c.in_or(2, Tensor()), c.attr("axis", -1), epsilon_of(c),
                        c.dtype_attr("stash_type", kFloat32));
  return {made.y, made.mean, made.inverse_deviation};
}

Tensors import_rms_normalization(Call& c) {
  return {rms_norm_staged(c.in(0), c.in(1), c.attr("axis", -1), epsilon_of(c),
                          c.dtype_attr("stash_type", kFloat32))};
}

// Outputs: the result, one over the root of the mean square.
Tensors import_simplified_layer_normalization(Call& c) {
  c.refuse_outputs(1);
  return import_rms_normalization(c);
}

Tensors import_mean_variance_normalization(Call& c) {
  return {mean_variance_norm(c.in(0), axes_of(c.ints_attr("axes", {0, 2, 3}), c.in(0).rank()))};
}

Tensors import_lp_normalization(Call& c) {
  return {lp_normalize(c.in(0), c.attr("p", 2), c.attr("axis", -1))};
}

Tensors import_lrn(Call& c) {
  return {lrn(c.in(0), c.attr("size"), static_cast<double>(c.real_attr("alpha", 1e-4f)),
              static_cast<double>(c.real_attr("beta", 0.75f)),
              static_cast<double>(c.real_attr("bias", 1.0f)))};
}

constexpr int64_t kNow = kNewestOpset;

// clang-format off
constexpr Row kRows[] = {
    {"BatchNormalization",        1,  8,    import_batch_normalization_old},
    {"BatchNormalization",        9,  13,   stored_statistics},
    {"BatchNormalization",        14, kNow, import_batch_normalization},
    {"InstanceNormalization",     1,  kNow, import_instance_normalization},
    {"GroupNormalization",        18, kNow, import_group_normalization},
    // Before version 17 it was onnxruntime's, under the standard's name; the simplified one is still.
    {"LayerNormalization",           1, kNow, import_layer_normalization},
    {"SimplifiedLayerNormalization", 1, kNow, import_simplified_layer_normalization},
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
