// Sums of products over named axes.
#pragma once

#include <span>
#include <string_view>

#include "tensor/tensor.h"

namespace tiny {

// numpy.einsum: "ij,jk->ik" names the axes of each operand and of the result; axes that the result
// lacks are summed, and a letter that an operand has twice takes its diagonal.  "..." stands for
// axes that broadcast.  Without "->" the result has the axes of "..." and then the letters that
// stand once, in alphabetical order.  Sums are made in the dtype in which the operands meet.
Tensor einsum(std::string_view equation, std::span<const Tensor> operands);

}  // namespace tiny
