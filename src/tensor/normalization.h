// Normalisation: values less their mean, over their deviation.  Everything is computed in float32
// at least and rounded once; `scale` and `bias` may be no tensor where the text says so.
#pragma once

#include "tensor/tensor.h"

namespace tiny {

// `correction` is what is taken from the count: 0 for the population, 1 for a sample.
Tensor variance(const Tensor& a, const Ints& axes, double correction = 0, bool keepdims = false);
Tensor standard_deviation(const Tensor& a, const Ints& axes, double correction = 0,
                          bool keepdims = false);

// (sum |a|^p)^(1/p).
Tensor lp_norm(const Tensor& a, double p, const Ints& axes, bool keepdims = false);

// (x - mean) / sqrt(variance + epsilon) * scale + bias with one number of each per channel (axis
// 1).
Tensor batch_norm(const Tensor& x, const Tensor& scale, const Tensor& bias, const Tensor& mean,
                  const Tensor& var, double epsilon = 1e-5);
// Over the axes from `axis` on; scale and bias (each may be none) broadcast.
Tensor layer_norm(const Tensor& x, const Tensor& scale, const Tensor& bias, int64_t axis = -1,
                  double epsilon = 1e-5);
// x / sqrt(mean(x * x) + epsilon) * scale over the axes from `axis` on.
Tensor rms_norm(const Tensor& x, const Tensor& scale, int64_t axis = -1, double epsilon = 1e-5);
// Over the spatial axes and, in each of `groups` parts, the channels; scale and bias per channel,
// or none.
Tensor group_norm(const Tensor& x, int64_t groups, const Tensor& scale, const Tensor& bias,
                  double epsilon = 1e-5);
// Over the spatial axes: a group for each channel.
Tensor instance_norm(const Tensor& x, const Tensor& scale, const Tensor& bias,
                     double epsilon = 1e-5);
// x / (k + alpha / size * sum of squares of the `size` channels around it) ^ beta.
Tensor lrn(const Tensor& x, int64_t size, double alpha = 1e-4, double beta = 0.75, double k = 1);

}  // namespace tiny
