// Sliding windows as views: what convolutions and pools are made of.
#pragma once

#include "onnx/import/call.h"

namespace tiny::onnx {

// How windows lie on the spatial axes (all but the first two), one number per axis.
struct Windows {
  Ints kernel;
  Ints stride;
  Ints dilation;
  Ints before;  // padding
  Ints after;
  Ints extra;  // more padding at the end, so that a last window fits (ceil_mode)
  Ints count;  // of windows
};

// The attributes kernel_shape (or `kernel`), strides, dilations, pads, auto_pad and ceil_mode, for
// an input with these spatial sizes.
Windows windows_of(const Call& call, const Ints& spatial, const std::optional<Ints>& kernel = {});

// x with `value` (its bits: zero) around the spatial axes.
Tensor padded_for(const Tensor& x, const Windows& w);

// [.., n1, n2] as [.., windows1, windows2, kernel1, kernel2]; the last axes are the spatial ones,
// already padded.
Tensor sliding(const Tensor& x, const Windows& w);

// The convolution of x [N, C, ..] with weights [M, C / groups, ..], without padding or bias.
// Integers wrap; 16-bit floats accumulate in float32.
Tensor convolved(const Tensor& x, const Tensor& weights, int64_t groups, const Windows& w);

}  // namespace tiny::onnx
