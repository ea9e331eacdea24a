// Functions of one tensor that networks use between their layers.  Integers count as float32.
#pragma once

#include "tensor/tensor.h"

namespace tiny {

enum class GeluKind { Exact, Tanh };

Tensor gelu(const Tensor& a, GeluKind kind = GeluKind::Exact);
Tensor silu(const Tensor& a);                             // a * sigmoid(a)
Tensor elu(const Tensor& a, double alpha = 1);            // alpha * (exp(a) - 1) below 0
Tensor leaky_relu(const Tensor& a, double slope = 0.01);  // slope * a below 0
Tensor hard_sigmoid(const Tensor& a, double alpha,
                    double beta);  // alpha * a + beta, within 0 and 1
Tensor softplus(const Tensor& a);  // log(1 + exp(a)), without overflow
Tensor expm1(const Tensor& a);     // exp(a) - 1, exact near 0
Tensor log1p(const Tensor& a);     // log(1 + a), exact near 0
// Between `low` and `high`, each of which may be no tensor; NaN stays.
Tensor clip(const Tensor& a, const Tensor& low, const Tensor& high);

// Along one axis; 16-bit floats are computed in float32 and round once.
Tensor softmax(const Tensor& a, int64_t axis = -1);
Tensor log_softmax(const Tensor& a, int64_t axis = -1);
Tensor logsumexp(const Tensor& a, const Ints& axes, bool keepdims = false);

}  // namespace tiny
