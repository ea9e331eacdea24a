// Tensors put together and taken apart.
#pragma once

#include <span>
#include <vector>

#include "tensor/tensor.h"

namespace tiny {

// One after the other along `axis`; the other dimensions agree; dtypes promote.
Tensor concat(std::span<const Tensor> parts, int64_t axis);
// Along a new axis.
Tensor stack(std::span<const Tensor> parts, int64_t axis);
// Parts of these sizes along `axis`, which they fill.
std::vector<Tensor> split(const Tensor& a, const Ints& sizes, int64_t axis);

}  // namespace tiny
