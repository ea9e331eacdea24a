// Elements that data chooses.
#pragma once

#include "onnx/import/call.h"

namespace tiny::onnx {

// The places of the elements of `mask` (bool, one axis) that are true: as many as the run finds.
Tensor counted_places(Call& c, const Tensor& mask);

}  // namespace tiny::onnx
