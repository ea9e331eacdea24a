// Normalisation: values less their mean, over their deviation.  Everything is computed in float32
// at least and rounded once, where the text says nothing else; `scale` and `bias` may be no tensor
// where it says so.
#pragma once

#include "tensor/tensor.h"

namespace tiny {

// `correction` is what is taken from the count: 0 for the population, 1 for a sample.
Tensor variance(const Tensor& a, const Ints& axes, double correction = 0, bool keepdims = false);

// (sum |a|^p)^(1/p).
Tensor lp_norm(const Tensor& a, double p, const Ints& axes, bool keepdims = false);

// (x - mean) / sqrt(variance + epsilon) * scale + bias with one number of each per channel (axis
// 1).
Tensor batch_norm(const Tensor& x, const Tensor& scale, const Tensor& bias, const Tensor& mean,
                  const Tensor& var, double epsilon = 1e-5);
// The same with the factors of a channel together, x * factor + rest, so that constants leave one
// multiplication and one addition for each element.
Tensor batch_norm_folded(const Tensor& x, const Tensor& scale, const Tensor& bias,
                         const Tensor& mean, const Tensor& var, double epsilon = 1e-5);
// By the mean and variance of x itself (of the population), which are computed in float32 at least.
struct TrainedBatchNorm {
  Tensor y;
  Tensor mean, var;
};
TrainedBatchNorm batch_norm_of_itself(const Tensor& x, const Tensor& scale, const Tensor& bias,
                                      double epsilon = 1e-5);
// The same with running statistics, which become running * momentum + statistics of x *
// (1 - momentum), in their own dtypes.
struct RunningBatchNorm {
  Tensor y;
  Tensor running_mean, running_var;
};
RunningBatchNorm batch_norm_training(const Tensor& x, const Tensor& scale, const Tensor& bias,
                                     const Tensor& running_mean, const Tensor& running_var,
                                     double epsilon = 1e-5, double momentum = 0.9);
// With a number for each element of a sample, not for each channel, in x's dtype.
Tensor batch_norm_elementwise(const Tensor& x, const Tensor& scale, const Tensor& bias,
                              const Tensor& mean, const Tensor& var, double epsilon = 1e-5);
// Over the axes from `axis` on; scale and bias (each may be none) broadcast.
Tensor layer_norm(const Tensor& x, const Tensor& scale, const Tensor& bias, int64_t axis = -1,
                  double epsilon = 1e-5);
// The same in two stages, with its statistics: normalised in `stage` and rounded to x's dtype, then
// scaled there.
struct StagedLayerNorm {
  Tensor y;
  Tensor mean, inverse_deviation;  // in `stage`; the axes have size 1
};
StagedLayerNorm layer_norm_staged(const Tensor& x, const Tensor& scale, const Tensor& bias,
                                  int64_t axis = -1, double epsilon = 1e-5, DType stage = kFloat32);
// x / sqrt(mean(x * x) + epsilon) * scale over the axes from `axis` on.
Tensor rms_norm(const Tensor& x, const Tensor& scale, int64_t axis = -1, double epsilon = 1e-5);
Tensor rms_norm_staged(const Tensor& x, const Tensor& scale, int64_t axis = -1,
                       double epsilon = 1e-5, DType stage = kFloat32);
// Over the spatial axes and, in each of `groups` parts, the channels; scale and bias per channel,
// or none.
Tensor group_norm(const Tensor& x, int64_t groups, const Tensor& scale, const Tensor& bias,
                  double epsilon = 1e-5);
// Over the spatial axes: a group for each channel.
Tensor instance_norm(const Tensor& x, const Tensor& scale, const Tensor& bias,
                     double epsilon = 1e-5);
// (x - mean) / (deviation + epsilon) over these axes, in x's dtype.
Tensor mean_variance_norm(const Tensor& x, const Ints& axes, double epsilon = 1e-9);
// x / (sum |x|^p)^(1/p) along `axis`, p being 1 or 2; where all are 0 they stay 0.
Tensor lp_normalize(const Tensor& x, int64_t p, int64_t axis = -1);
// x / (k + alpha / size * sum of squares of the `size` channels around it) ^ beta.
Tensor lrn(const Tensor& x, int64_t size, double alpha = 1e-4, double beta = 0.75, double k = 1);

}  // namespace tiny
