// What convolutions and pooling share; no business of anyone else.
#pragma once

#include "tensor/window.h"

namespace tiny {

// Every list with one number for each spatial axis.
struct FullWindowOptions {
  Ints strides;
  Ints dilations;
  Ints before;
  Ints after;
};
FullWindowOptions complete(const WindowOptions& options, size_t spatial, const char* what);

// The sizes of the last `spatial` axes.
Shape spatial_sizes(const Tensor& x, size_t spatial, const char* what);

// Padding of the last axes.
Tensor pad_spatial(const Tensor& x, const Ints& before, const Ints& after, double value);

}  // namespace tiny
