// Functions of one tensor that networks use between their layers.  Integers count as float32.
#pragma once

#include "tensor/tensor.h"

namespace tiny {

// With these, layers keep mean 0 and variance 1 (Klambauer et al., 2017).
inline constexpr double kSeluAlpha = 1.6732632423543772;
inline constexpr double kSeluGamma = 1.0507009873554805;

enum class GeluKind { Exact, Tanh };

Tensor gelu(const Tensor& a, GeluKind kind = GeluKind::Exact);
Tensor silu(const Tensor& a);                             // a * sigmoid(a)
Tensor elu(const Tensor& a, double alpha = 1);            // alpha * (exp(a) - 1) below 0
Tensor leaky_relu(const Tensor& a, double slope = 0.01);  // slope * a below 0
Tensor hard_sigmoid(const Tensor& a, double alpha,
                    double beta);                // alpha * a + beta, within 0 and 1
Tensor softplus(const Tensor& a);                // log(1 + exp(a)), without overflow
Tensor softsign(const Tensor& a);                // a / (1 + |a|)
Tensor mish(const Tensor& a);                    // a * tanh(softplus(a))
Tensor hard_swish(const Tensor& a);              // a * hard_sigmoid(a, 1 / 6, 0.5)
Tensor swish(const Tensor& a, double beta = 1);  // a * sigmoid(beta * a)
Tensor celu(const Tensor& a, double alpha = 1);  // alpha * (exp(a / alpha) - 1) below 0
// gamma * (alpha * (exp(a) - 1) below 0, a elsewhere).
Tensor selu(const Tensor& a, double alpha = kSeluAlpha, double gamma = kSeluGamma);
// scale * (exp(a / width) - 1) below 0, which near 0 is as exact as 1 + a; expm1 costs more.
Tensor exponential_unit(const Tensor& a, double scale, double width);
Tensor prelu(const Tensor& a, const Tensor& slope);  // slope * a below 0; integers stay integers
Tensor thresholded_relu(const Tensor& a, double threshold = 1);  // 0 up to the threshold
// a + bias below -lambda, a - bias above lambda, 0 between; with a bias of 0 it is called hard.
// Integers stay integers.
Tensor soft_shrink(const Tensor& a, double lambda = 0.5, double bias = 0);
Tensor expm1(const Tensor& a);  // exp(a) - 1, exact near 0
Tensor log1p(const Tensor& a);  // log(1 + a), exact near 0
// Between `low` and `high`, each of which may be no tensor; NaN stays.
Tensor clip(const Tensor& a, const Tensor& low, const Tensor& high);

// Along one axis; 16-bit floats are computed in float32 and round once.
Tensor softmax(const Tensor& a, int64_t axis = -1);
Tensor log_softmax(const Tensor& a, int64_t axis = -1);
Tensor logsumexp(const Tensor& a, const Ints& axes, bool keepdims = false);

}  // namespace tiny
