// Values under an identity of their own, which gradients see and nothing else.
#pragma once

#include <span>

#include "tensor/tensor.h"

namespace tiny {

// The same value, through which no gradient goes: of memory a view, so that a write to one is one
// to both.
Tensor detach(const Tensor& a);
// The same value under an identity that no other has, of equal constants too: gradients by it are
// apart, and go through it to `a`.  It shares no memory that is written.
Tensor clone(const Tensor& a);
// The same value, stored.  A gradient through it computes again what it is made of, instead of
// reading what the forward pass would have to keep: from `kept` on, from other such values, memory,
// and results of loops and of the caller's operators.
Tensor recompute(const Tensor& a, std::span<const Tensor> kept = {});

}  // namespace tiny
