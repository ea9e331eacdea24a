// Sliding windows, and what is made of them: convolutions and pooling.  Windows are views: nothing
// is copied, whatever they overlap.
//
// Tensors are [batch, channels, spatial..] unless the window's layout says otherwise.  Sizes may be
// symbolic, but those of kernels.
#pragma once

#include <cstdint>

#include "tensor/tensor.h"

namespace tiny {

// What is added around the spatial axes.
enum class Padding : uint8_t {
  Explicit,   // `before` and `after`
  SameUpper,  // so much that windows number size / stride, rounded up; what is odd goes after
  SameLower,  // the same; what is odd goes before
  Valid,      // nothing
};

enum class Layout : uint8_t {
  ChannelsFirst,  // x and result [batch, channels, spatial..], weight [first, second, kernel..]
  ChannelsLast,   // x and result [batch, spatial.., channels], weight [first, kernel.., second]
};

// How windows lie.  Lists have one number for each spatial axis; an empty one means the default.
struct Window {
  Ints strides = {};    // 1
  Ints dilations = {};  // 1
  Ints before = {};     // explicit padding, 0
  Ints after = {};
  Ints kernel = {};  // of pools; a convolution's is its weight's, and may be left out
  Padding padding = Padding::Explicit;
  Layout layout = Layout::ChannelsFirst;
  int64_t groups = 1;              // of channels; of convolutions
  Ints output_padding = {};        // 0: what a transposed convolution adds at the end of each axis
  Ints output_size = {};           // of a transposed convolution, which chooses the padding then
  bool ceil_mode = false;          // of pools: a last window may reach over the end
  bool count_include_pad = false;  // of avg_pool: padding (not what ceil_mode adds) counts as zeros

  Window with_kernel(Ints sizes) const;
  Window with_groups(int64_t count) const;
};

// Error{Shape or InvalidArgument} that begins with `what` unless the lists have `spatial` numbers,
// and each number is one that it can be.
void check_window(const Window& window, size_t spatial, const char* what);

// The number of windows along one axis of `size` elements, padding included.
Dim window_count(const Dim& size, int64_t kernel, int64_t stride, int64_t dilation,
                 bool ceil_mode = false);

// The windows of the last std::size(kernel) axes: [.., counts.., kernel..], of which count[i] start
// stride[i] apart.  Every window lies inside.
Tensor windows(const Tensor& x, const Ints& kernel, const Ints& strides, const Ints& dilations,
               const Shape& counts);

// The same of every window that fits, with zeros where the window is padded.
Tensor windows(const Tensor& x, const Window& window);

// Cross-correlation: weight is [out channels, channels / groups, kernel..], bias (may be no tensor)
// is [out channels].  16-bit floats accumulate in float32.
Tensor conv(const Tensor& x, const Tensor& weight, const Tensor& bias, const Window& window);
// The transpose of conv (its gradient): weight is [channels, out channels / groups, kernel..].
// Padding that is Same makes size * stride outputs.
Tensor conv_transpose(const Tensor& x, const Tensor& weight, const Tensor& bias,
                      const Window& window);

// The greatest value of each window; padding counts for nothing.
Tensor max_pool(const Tensor& x, const Window& window);
// Where max_pool's values are: positions in the flattened spatial axes of one channel, int64; the
// first of equals, and of NaNs.
Tensor max_pool_indices(const Tensor& x, const Window& window);
// The same as positions in all of x, which has its channels first; `column_major`: with the spatial
// axes in the other order, the first of them fastest.
Tensor max_pool_positions(const Tensor& x, const Window& window, bool column_major = false);
// The mean of each window.
Tensor avg_pool(const Tensor& x, const Window& window);
// (sum |x|^p)^(1/p) of each window, p more than 0.
Tensor lp_pool(const Tensor& x, const Window& window, double p);

}  // namespace tiny
