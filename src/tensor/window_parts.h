// What convolutions and pooling share; no business of anyone else.
#pragma once

#include "tensor/window.h"

namespace tiny {

// `window` with every list full, `kernel` as its kernel, and explicit padding for spatial axes of
// these sizes.
Window complete(const Window& window, const Ints& kernel, const Shape& sizes, const char* what);
// The same for a transposed convolution of axes of these sizes.
Window complete_transposed(const Window& window, const Ints& kernel, const Shape& sizes,
                           const char* what);

// `tensor` in the window's layout as [.., channels, spatial..], and back.
Tensor from_layout(const Tensor& tensor, const Window& window, size_t spatial);
Tensor to_layout(const Tensor& tensor, const Window& window, size_t spatial);

// The sizes of the last `spatial` axes.
Shape spatial_sizes(const Tensor& x, size_t spatial, const char* what);

// Padding of the last axes.
Tensor pad_spatial(const Tensor& x, const Ints& before, const Shape& after, double value);

}  // namespace tiny
