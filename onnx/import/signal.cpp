// Signals and their spectra.
#include "tensor/signal.h"

#include "base/error.h"
#include "onnx/import/functions.h"
#include "onnx/import/import.h"
#include "onnx/import/table.h"
#include "tensor/elementwise.h"
#include "tensor/movement.h"

namespace tiny::onnx {

namespace {

// The last axis has the real and the imaginary parts, or the real parts alone.
Tensors spectrum(const Call& c, int64_t given_axis) {
  const Tensor& x = c.in(0);
  c.check(x.rank() >= 2, "it takes two axes or more; got ", x.rank());
  const int64_t axis = axis_of(given_axis, x.rank());
  c.check(axis < x.rank() - 1, "axis ", axis, " is that of the complex parts");
  DftOptions options{.inverse = c.flag("inverse", false), .onesided = c.flag("onesided", false)};
  if (c.has(1)) options.length = c.size(1);
  c.importer().require_found({options.length.value_or(size_of(x, axis)), size_of(x, axis)});
  const Complex out = dft(view_as_complex(x), axis, options);
  return {out.imaginary ? view_as_real(out) : unsqueeze(out.real, {out.real.rank()})};
}

Tensors import_dft_attribute(Call& c) {
  return spectrum(c, c.attr("axis", 1));
}
Tensors import_dft(Call& c) {
  return spectrum(c, c.has(2) ? c.integer(2) : -2);
}

// Inputs: the signal, the step, a window or none, the frames' length or none.
Tensors import_stft(Call& c) {
  const Tensor& signal = c.in(0);
  c.check(signal.rank() == 2 || signal.rank() == 3, "a signal with ", signal.rank(), " axes");
  c.check(c.has(2) || c.has(3), "it needs a window or a frame length");
  const Complex x = signal.rank() == 2 ? Complex{signal, Tensor()} : view_as_complex(signal);
  const int64_t length = c.has(3) ? c.integer(3) : dim_of(c.in(2), 0);
  const bool onesided = c.flag("onesided", true) && !x.imaginary;
  return {view_as_real(stft(x, c.in_or(2, Tensor()), length, c.integer(1), onesided))};
}

template <Tensor (*kWindow)(const Ref<Context>&, const tiny::Dim&, bool)>
Tensors import_window(Call& c) {
  const DType dtype = c.dtype_attr("output_datatype", kFloat32);
  return {cast(kWindow(c.context(), c.size(0), c.flag("periodic", true)), dtype)};
}

// Inputs: the bands, the transform's length, samples a second, the lowest and the highest Hz.
Tensors import_mel_weights(Call& c) {
  const tiny::Dim length = c.size(1);
  c.importer().require_found({length});
  const Tensor weights = mel_weights(c.context(), c.integer(0), length,
                                     static_cast<double>(c.integer(2)), c.real(3), c.real(4));
  return {cast(weights, c.dtype_attr("output_datatype", kFloat32))};
}

constexpr int64_t kNow = kNewestOpset;

// clang-format off
constexpr Row kRows[] = {
    {"DFT",  17, 19,   import_dft_attribute, operand(1)},
    {"DFT",  20, kNow, import_dft,           operand(1) | operand(2)},
    {"STFT", 17, kNow, import_stft,          operand(1) | operand(3)},
    {"HannWindow",      17, kNow, import_window<hann_window>,     operand(0)},
    {"HammingWindow",   17, kNow, import_window<hamming_window>,  operand(0)},
    {"BlackmanWindow",  17, kNow, import_window<blackman_window>, operand(0)},
    {"MelWeightMatrix", 17, kNow, import_mel_weights, kEveryOperand},
};
// clang-format on

}  // namespace

std::span<const Row> signal_rows() {
  return kRows;
}

}  // namespace tiny::onnx
