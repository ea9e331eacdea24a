// Sliding windows, and what is made of them: convolutions and pooling.  Windows are views: nothing
// is copied, whatever they overlap.
//
// Tensors are [batch, channels, spatial..]; lists have one number for each spatial axis, and an
// empty list means the default.  Spatial sizes of pooling are numbers; others may be symbolic.
#pragma once

#include <cstdint>

#include "tensor/tensor.h"

namespace tiny {

struct WindowOptions {
  Ints strides;    // 1
  Ints dilations;  // 1
  Ints before;     // padding, 0
  Ints after;
};

// The number of windows along one axis of `size` elements, padding included.
Dim window_count(const Dim& size, int64_t kernel, int64_t stride, int64_t dilation,
                 bool ceil_mode = false);

// The windows of the last std::size(kernel) axes: [.., counts.., kernel..], of which count[i] start
// stride[i] apart.  Every window lies inside.
Tensor windows(const Tensor& x, const Ints& kernel, const Ints& strides, const Ints& dilations,
               const Shape& counts);

// Cross-correlation: weight is [out channels, channels / groups, kernel..], bias (may be no tensor)
// is [out channels].  16-bit floats accumulate in float32.
Tensor conv(const Tensor& x, const Tensor& weight, const Tensor& bias, const WindowOptions& options,
            int64_t groups = 1);
// The transpose of conv (its gradient): weight is [channels, out channels / groups, kernel..];
// `output_padding` adds to the end of each spatial axis.
Tensor conv_transpose(const Tensor& x, const Tensor& weight, const Tensor& bias,
                      const WindowOptions& options, const Ints& output_padding = {},
                      int64_t groups = 1);

// The greatest value of each window; padding counts for nothing.  `ceil_mode` also keeps a last
// window that reaches over the end.
Tensor max_pool(const Tensor& x, const Ints& kernel, const WindowOptions& options,
                bool ceil_mode = false);
// Where max_pool's values are: positions in the flattened spatial axes of one channel, int64; the
// first of equals, and of NaNs.
Tensor max_pool_indices(const Tensor& x, const Ints& kernel, const WindowOptions& options,
                        bool ceil_mode = false);
// The mean of each window; `count_include_pad` counts padding (not what ceil_mode adds) as zeros.
Tensor avg_pool(const Tensor& x, const Ints& kernel, const WindowOptions& options,
                bool ceil_mode = false, bool count_include_pad = false);

}  // namespace tiny
