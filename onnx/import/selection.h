// Elements that data chooses.
#pragma once

#include "onnx/import/call.h"

namespace tiny::onnx {

// The places of the elements of `mask` (bool, one axis) that are true: as many as the run finds.
Tensor counted_places(Call& c, const Tensor& mask);
// The first `count` elements of as many: that there are no more no size tells.
Tensor first_elements(const Tensor& x, const tiny::Dim& count);

}  // namespace tiny::onnx
