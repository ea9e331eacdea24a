// Fourier transforms as products with matrices of cosines and sines.
#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "base/error.h"
#include "engine/host_room.h"
#include "onnx/import/functions.h"
#include "onnx/import/table.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/joining.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/window.h"

namespace tiny::onnx {

namespace {

// Longer transforms would need matrices of more than this many elements.
constexpr int64_t kMatrixMax = int64_t{1} << 26;

// A complex number in two tensors; no imaginary part for real ones.
struct Complex {
  Tensor real;
  Tensor imaginary;
};

struct Turns {
  Tensor cosine;  // [from, to]
  Tensor sine;
};

// cos and sin of 2 pi n k / length.
Turns turns(const Call& c, DType dtype, int64_t from, int64_t to, int64_t length) {
  if (checked_mul(from, to, "a transform") > kMatrixMax)
    c.unsupported("a transform of ", from, " elements to ", to);
  std::vector<double> cosine, sine;
  HostRoom room(*c.context(), from * to, 2 * sizeof(double));
  for (int64_t n = 0; n < from; ++n)
    for (int64_t k = 0; k < to; ++k) {
      room.check();
      // The angle is taken from the remainder, which is exact.
      const double angle =
          2 * M_PI * static_cast<double>(n * k % length) / static_cast<double>(length);
      cosine.push_back(std::cos(angle));
      sine.push_back(std::sin(angle));
    }
  const auto bytes = static_cast<int64_t>(cosine.size() * sizeof(double));
  return {cast(from_data(c.context(), kFloat64, {from, to}, cosine.data(), bytes), dtype),
          cast(from_data(c.context(), kFloat64, {from, to}, sine.data(), bytes), dtype)};
}

// The transform over the last axis, `to` of its values.
Complex transformed(const Call& c, const Complex& x, int64_t to, int64_t length, bool inverse) {
  const Turns t = turns(c, x.real.dtype(), dim_of(x.real, -1), to, length);
  const Tensor sine = inverse ? neg(t.sine) : t.sine;
  Tensor real = matmul(x.real, t.cosine);
  Tensor imaginary = neg(matmul(x.real, sine));
  if (x.imaginary) {
    real = real + matmul(x.imaginary, sine);
    imaginary = imaginary + matmul(x.imaginary, t.cosine);
  }
  if (!inverse) return {real, imaginary};
  const Tensor n = number(real, static_cast<double>(length));
  return {real / n, imaginary / n};
}

// [.., 1 or 2] as its parts.
Complex parts_of(const Call& c, const Tensor& x) {
  const int64_t parts = dim_of(x, -1);
  c.check(parts == 1 || parts == 2, "the last axis has ", parts, " elements, not 1 or 2");
  const auto part = [&](int64_t i) { return squeeze(slice_axis(x, -1, i, i + 1), {-1}); };
  return {part(0), parts == 2 ? part(1) : Tensor()};
}

// The last axis cut or filled with zeros to `length`.
Tensor sized(const Tensor& x, int64_t length) {
  Ints none(static_cast<size_t>(x.rank()), 0), more = none;
  more.back() = length - dim_of(x, -1);
  return pad(x, to_shape(none), to_shape(more));
}

// From the bins of a real signal to all bins: the rest are conjugates.
Complex mirrored(const Complex& x, int64_t length) {
  Ints from;
  const HostRoom room(x.real.context(), length, sizeof(int64_t) + sizeof(double));
  for (int64_t k = 0; k < length; ++k) from.push_back(k <= length / 2 ? k : length - k);
  std::vector<double> sign;
  for (int64_t k = 0; k < length; ++k) sign.push_back(k <= length / 2 ? 1 : -1);
  const Tensor signs = cast(from_data(x.real.context_ref(), kFloat64, {length}, sign.data(),
                                      static_cast<int64_t>(sign.size() * sizeof(double))),
                            x.real.dtype());
  const Tensor imaginary = x.imaginary ? x.imaginary : number(x.real, 0) * x.real;
  return {take(x.real, from, -1), take(imaginary, from, -1) * signs};
}

Tensors dft(Call& c, int64_t given_axis) {
  const Tensor& x = c.in(0);
  c.check(x.rank() >= 2, "it takes two axes or more; got ", x.rank());
  const int64_t axis = axis_of(given_axis, x.rank());
  c.check(axis < x.rank() - 1, "axis ", axis, " is that of the complex parts");
  const bool inverse = c.flag("inverse", false);
  const bool onesided = c.flag("onesided", false);
  const bool to_real = inverse && onesided;
  const int64_t natural = to_real ? 2 * (dim_of(x, axis) - 1) : dim_of(x, axis);
  const int64_t length = c.has(1) ? c.integer(1) : natural;
  c.check(length > 0 && length < (int64_t{1} << 24), "a transform of ", length, " elements");
  // The transformed axis last.
  Complex in = parts_of(c, x);
  c.check(!onesided || inverse || !in.imaginary, "one side of a complex signal");
  const int64_t used = to_real ? length / 2 + 1 : length;
  in.real = sized(transpose(in.real, axis, -1), used);
  if (in.imaginary) in.imaginary = sized(transpose(in.imaginary, axis, -1), used);
  if (to_real) in = mirrored(in, length);
  const int64_t bins = onesided && !inverse ? length / 2 + 1 : length;
  const Complex out = transformed(c, in, bins, length, inverse);
  const Tensor real = transpose(out.real, axis, -1);
  if (to_real) return {unsqueeze(real, {real.rank()})};
  return {stack(std::vector<Tensor>{real, transpose(out.imaginary, axis, -1)}, real.rank())};
}

Tensors import_dft_attribute(Call& c) {
  return dft(c, c.attr("axis", 1));
}
Tensors import_dft(Call& c) {
  return dft(c, c.has(2) ? c.integer(2) : -2);
}

// Inputs: the signal, the step, a window or none, the frames' length or none.
Tensors import_stft(Call& c) {
  const Tensor& signal = c.in(0);
  const int64_t step = c.integer(1);
  c.check(signal.rank() == 2 || signal.rank() == 3, "a signal with ", signal.rank(), " axes");
  const Tensor x = signal.rank() == 2 ? unsqueeze(signal, {2}) : signal;
  c.check(c.has(2) || c.has(3), "it needs a window or a frame length");
  const int64_t length = c.has(3) ? c.integer(3) : dim_of(c.in(2), 0);
  const int64_t size = dim_of(x, 1);
  c.check(step > 0 && length > 0 && length <= size, "frames of ", length, " elements, ", step,
          " apart, of ", size);
  const int64_t frames = (size - length) / step + 1;
  const auto framed = [&](const Tensor& part) {
    const Tensor views = windows(part, {length}, {step}, {1}, {frames});
    if (!c.has(2)) return views;
    c.check(dims_of(c.in(2)) == Ints{length}, "a window of shape ", c.in(2).shape());
    return views * c.in(2);
  };
  Complex in = parts_of(c, x);
  const bool onesided = c.flag("onesided", true) && !in.imaginary;
  in.real = framed(in.real);
  if (in.imaginary) in.imaginary = framed(in.imaginary);
  const Complex out = transformed(c, in, onesided ? length / 2 + 1 : length, length, false);
  return {stack(std::vector<Tensor>{out.real, out.imaginary}, 3)};
}

// Triangles over the bins of a spectrum, their corners evenly spaced on the mel scale and rounded
// down to bins.
Tensors import_mel_weights(Call& c) {
  const int64_t bands = c.integer(0);
  const int64_t length = c.integer(1);
  const auto rate = static_cast<double>(c.integer(2));
  c.check(bands > 0 && length > 0 && bands < (1 << 20) && length < (1 << 24) && rate > 0, bands,
          " bands of a transform of ", length, " elements");
  const int64_t bins = length / 2 + 1;
  if (checked_mul(bands, bins, "mel weights") > kMatrixMax) c.unsupported("so large a matrix");
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double low = mel(c.real(3));
  const double high = mel(c.real(4));
  Ints corners;
  for (int64_t i = 0; i < bands + 2; ++i) {
    const double at = low + (high - low) / static_cast<double>(bands + 2) * static_cast<double>(i);
    const double hertz = 700 * (std::pow(10, at / 2595) - 1);
    const double bin = std::floor(static_cast<double>(length + 1) * hertz / rate);
    c.check(bin >= 0 && bin < 0x1p31, "a corner at ", hertz, " Hz");
    corners.push_back(static_cast<int64_t>(bin));
  }
  HostRoom room(*c.context(), bins * bands, sizeof(double));
  std::vector<double> weights(static_cast<size_t>(bins * bands), 0);
  const auto at = [&](int64_t bin, int64_t band) -> double& {
    return weights[static_cast<size_t>(bin * bands + band)];
  };
  for (int64_t b = 0; b < bands; ++b) {
    const int64_t left = corners[static_cast<size_t>(b)];
    const int64_t middle = corners[static_cast<size_t>(b) + 1];
    const int64_t right = corners[static_cast<size_t>(b) + 2];
    room.check();
    for (int64_t i = left; i <= std::min(middle, bins - 1); ++i)
      at(i, b) =
          middle == left ? 1 : static_cast<double>(i - left) / static_cast<double>(middle - left);
    for (int64_t i = middle; i < std::min(right, bins); ++i)
      at(i, b) = static_cast<double>(right - i) / static_cast<double>(right - middle);
  }
  const Tensor out = from_data(c.context(), kFloat64, {bins, bands}, weights.data(),
                               static_cast<int64_t>(weights.size() * sizeof(double)));
  return {cast(out, c.dtype_attr("output_datatype", kFloat32))};
}

constexpr int64_t kNow = kNewestOpset;

// clang-format off
constexpr Row kRows[] = {
    {"DFT",  17, 19,   import_dft_attribute, operand(1)},
    {"DFT",  20, kNow, import_dft,           operand(1) | operand(2)},
    {"STFT", 17, kNow, import_stft,          operand(1) | operand(3)},
    {"MelWeightMatrix", 17, kNow, import_mel_weights, kEveryOperand},
};
// clang-format on

}  // namespace

std::span<const Row> signal_rows() {
  return kRows;
}

}  // namespace tiny::onnx
