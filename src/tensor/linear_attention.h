// Recurrences over a sequence that replace attention, and the convolution before them.
#pragma once

#include <optional>

#include "tensor/tensor.h"

namespace tiny {

struct CausalConvolution {
  Tensor y;      // [batch, channels, steps]
  Tensor state;  // [batch, channels, taps - 1]: the last of what was seen
};
// Each channel of x [batch, channels, steps] with its own kernel, weight [channels, 1, taps], which
// looks back only: first at `state`, zeros if there is none.  `bias` is [channels], or none.
CausalConvolution causal_convolution(const Tensor& x, const Tensor& weight, const Tensor& bias,
                                     const Tensor& state);

// The heads of an operand stand side by side in its last axis.  `groups` divides `heads`, and
// consecutive heads of queries share a group.
struct LinearAttentionOperands {
  int64_t heads = 1, groups = 1;
  Tensor query;  // [batch, steps, heads * size]
  Tensor key;    // [batch, steps, groups * size]
  Tensor value;  // [batch, steps, groups * value size]
  Tensor decay;  // g: [batch, steps, groups * (size or 1)], or none
  Tensor beta;   // [batch, steps, groups or 1], or none
  Tensor state;  // S: [batch, groups, size, value size]; zeros if none
};
struct LinearAttention {
  Tensor y;      // [batch, steps, heads * value size], of the query's dtype
  Tensor state;  // after the last step, of the given state's dtype, or the query's
};
// At each step, with S decayed by exp(g) where there is a decay:
//   S += k v^T                       or, where there is beta (the delta rule),
//   S += k (beta (v - S^T k))^T
//   y = scale S^T q
// Everything is computed in float32 at least.  No scale: 1 / sqrt(size).
LinearAttention linear_attention(const LinearAttentionOperands& operands,
                                 std::optional<double> scale = {});

}  // namespace tiny
