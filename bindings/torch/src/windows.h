// Convolutions and pools of the engine, by PyTorch's lists of numbers.
#pragma once

#include "value.h"

namespace tiny_torch {

struct WindowSizes {
  Sizes kernel;  // of pools
  Sizes strides, padding, dilations, output_padding;
  int64_t groups = 1;
  tiny_flags flags = 0;
};

// Lists of one number hold for every one of `axes`.
Sizes for_axes(Sizes given, int64_t axes, int64_t otherwise);

Value convolution(const Value& x, const Value& weight, const WindowSizes& sizes,
                  bool is_transposed);
Value max_pool(const Value& x, const WindowSizes& sizes);
Value max_pool_places(const Value& x, const WindowSizes& sizes);
Value average_pool(const Value& x, const WindowSizes& sizes);

}  // namespace tiny_torch
