// Signals and their spectra.  Fourier transforms are products with matrices of cosines and sines,
// so they may be of any length, and none may be so long that its matrix has more than 2^26 elements
// (Error{Unsupported}).  Sizes are numbers, or what a run finds: then the matrices are computed in
// it.
#pragma once

#include <optional>

#include "tensor/tensor.h"

namespace tiny {

// A complex number in two tensors; no imaginary part: a real one.
struct Complex {
  Tensor real;
  Tensor imaginary;
};
// The parts of x [.., 1 or 2], each without the last axis; and both beside each other, [.., 2].
Complex view_as_complex(const Tensor& x);
Tensor view_as_real(const Complex& x);

struct DftOptions {
  bool inverse = false;  // the result is divided by the length
  // Of a real signal: bins 0 to length / 2.  With `inverse`: from such bins a real signal (which
  // has no imaginary part); those that are left out are the conjugates of those that are there.
  bool onesided = false;
  // The axis is cut or filled with zeros to this length (to length / 2 + 1 bins of one side); none:
  // its size (of one side, what 2 * (bins - 1) gives).
  std::optional<Dim> length = {};
};
// The discrete Fourier transform along `axis`.
Complex dft(const Complex& x, int64_t axis, const DftOptions& options = {});

// The spectra of frames of x [batch, samples], `step` samples apart, each of `length` samples times
// `window` ([length], or no tensor): [batch, frames, bins].  Frames lie inside.  `onesided`: bins 0
// to length / 2, of a real x.
Complex stft(const Complex& x, const Tensor& window, int64_t length, int64_t step,
             bool onesided = true);

// Windows of `size` samples, float64 [size]; `periodic`: over the size, otherwise over one less, so
// that they are symmetric.
Tensor hann_window(const Ref<Context>& context, const Dim& size, bool periodic = true);
Tensor hamming_window(const Ref<Context>& context, const Dim& size, bool periodic = true);
Tensor blackman_window(const Ref<Context>& context, const Dim& size, bool periodic = true);

// What takes the spectrum of one side of a signal to mel bands: float64 [length / 2 + 1, bands].
// Triangles, whose corners are evenly spaced on the mel scale from `low` to `high` Hz and rounded
// down to bins; `length` samples were transformed, `rate` of them a second.
Tensor mel_weights(const Ref<Context>& context, int64_t bands, const Dim& length, double rate,
                   double low, double high);

}  // namespace tiny
