// Convolutions of small integers with a scale and a zero point.
#pragma once

#include "tensor/quantization.h"
#include "tensor/window.h"

namespace tiny {

// conv of x - x_zero with weight - weight_zero in int32.  A zero point is none, one number or, of
// the weight, one for each output channel; bias (int32, one for each output channel) may be none.
Tensor conv_integer(const Tensor& x, const Tensor& x_zero, const Tensor& weight,
                    const Tensor& weight_zero, const Tensor& bias, const Window& window);
// The convolution of the numbers that x and weight stand for, as integers of y_zero's dtype.  The
// bias counts in units of x.scale * weight.scale; scales are as zero points are.
Tensor quantized_conv(const Quantized& x, const Quantized& weight, const Tensor& bias,
                      const Tensor& y_scale, const Tensor& y_zero, const Window& window);

}  // namespace tiny
