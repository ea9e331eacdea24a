// One of two branches.  Where the condition is known when the model is compiled it is chosen then;
// else the run chooses, and what it does not choose costs nothing.
#pragma once

#include "onnx/import/call.h"

namespace tiny::onnx {

Tensors import_if(Call& c);

// Whether branches make tensors of the same ranks and types.
bool are_of_one_kind(const Tensors& yes, const Tensors& no);
// `yes` where the condition (bool, no axes) holds, else `no`, of the same ranks and types: where
// their sizes differ the run computes them.
Tensors chosen_of(Call& c, const Tensor& condition, Tensors yes, Tensors no);

}  // namespace tiny::onnx
