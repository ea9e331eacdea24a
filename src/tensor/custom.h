// Operators of the caller's applied to tensors.
#pragma once

#include <string>
#include <vector>

#include "engine/custom_op.h"
#include "tensor/tensor.h"

namespace tiny {

// The elements in memory of their own, row-major, when a step of a program comes that is no kernel
// of this value: a node of any shape.
UOp stored_whole(const Tensor& tensor);

// The operator's first `outputs` outputs, not computed.  An input that is left out is no tensor;
// attributes are a JSON object.
std::vector<Tensor> call_custom(const Ref<Context>& context, const Ref<const CustomOp>& op,
                                std::string attributes, const std::vector<Tensor>& inputs,
                                size_t outputs);

}  // namespace tiny
