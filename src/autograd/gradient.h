// Gradients as pure functions of tensors: nothing is marked before, nothing is kept behind.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tensor/tensor.h"

namespace tiny {

// For each of `targets` the sum over all losses of what the loss, weighed element by element with
// its upstream, changes by for each element: shape and dtype are the target's.  An upstream is of
// its loss's shape; no tensor stands for ones, which only a loss of one element may have.
// A target is a tensor that losses were built of, as it is now: what was assigned to it since, or a
// view of it, is another, but for its reshapes and transposes: the same elements in another order
// are the same target.  Error{InvalidArgument} for one that no loss depends on, unless
// `unused_are_zero`.
std::vector<Tensor> gradients(std::span<const Tensor> losses, std::span<const Tensor> upstreams,
                              std::span<const Tensor> targets, bool unused_are_zero = false);

// Which of `others`, in their order, `tensor` is made of: those that are targets of its gradients,
// and those that no gradient goes to (integers, what was detached).
std::vector<int64_t> made_of(const Tensor& tensor, std::span<const Tensor> others);

}  // namespace tiny
