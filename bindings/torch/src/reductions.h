// What other kernels take of the reductions.
#pragma once

#include "value.h"

namespace tiny_torch {

// The softmax along an axis, with zeros for rows of -inf alone.
Value safe_softmax(const Value& a, int64_t axis);

}  // namespace tiny_torch
