// Columns put back into pictures.
#pragma once

#include "tensor/window.h"

namespace tiny {

// x [batch, channels * size of a block, blocks] to [batch, channels, spatial..]: every block is
// added to the places of the picture that a window with this kernel, strides, dilations and
// explicit padding takes it from (torch.nn.Fold).  Integers wrap.  Sizes are numbers.
Tensor col2im(const Tensor& x, const Ints& spatial, const Window& window);

}  // namespace tiny
