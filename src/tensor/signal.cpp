#include "tensor/signal.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/checked.h"
#include "base/error.h"
#include "engine/host_room.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/joining.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/window.h"

namespace tiny {

namespace {

// Longer transforms would need matrices of more than this many elements.
constexpr int64_t kMatrixMax = int64_t{1} << 26;
// Products of two such lengths still fit.
constexpr int64_t kLengthMax = int64_t{1} << 24;

Dim size_along(const Tensor& x, int64_t axis) {
  return x.shape()[static_cast<size_t>(checked_axis(axis, x.rank()))];
}

int64_t length_of(const Tensor& x, int64_t axis) {
  return size_along(x, axis).value();
}

// Bins of one side of the spectrum of so many samples.
Dim one_side(const Dim& length) {
  return floor_div(length, 2) + 1;
}

// A size as float64 [].
Tensor real_size(const Ref<Context>& context, const Dim& size) {
  return cast(size_tensor(context, size), kFloat64);
}

Tensor from_doubles(const Ref<Context>& context, const Ints& shape,
                    const std::vector<double>& values) {
  return from_data(context, kFloat64, shape, values.data(), std::ssize(values) * 8);
}

struct Turns {
  Tensor cosine;  // [from, to]
  Tensor sine;
};

// The same of sizes that a run finds.
Turns turns_found(const Tensor& like, const Dim& from, const Dim& to, const Dim& length) {
  const Ref<Context>& context = like.context_ref();
  const Tensor steps =
      positions(context, kInt64, from, 0, 2) * positions(context, kInt64, to, 1, 2);
  // None of no elements.
  const Tensor whole = maximum(size_tensor(context, length), number_int(steps, 1));
  const Tensor rest = cast(floor_mod(steps, whole), kFloat64);
  const Tensor angle = rest * number(rest, 2 * M_PI) / cast(whole, kFloat64);
  return {cast(cos(angle), like.dtype()), cast(sin(angle), like.dtype())};
}

// cos and sin of 2 pi n k / length.
Turns turns(const Tensor& like, const Dim& from_size, const Dim& to_size, const Dim& whole) {
  if (!from_size.is_const() || !to_size.is_const() || !whole.is_const())
    return turns_found(like, from_size, to_size, whole);
  const int64_t from = from_size.value(), to = to_size.value(), length = whole.value();
  const Ref<Context>& context = like.context_ref();
  require(checked_mul(from, to, "a transform") <= kMatrixMax, Status::Unsupported,
          "a transform of ", from, " elements to ", to, " needs a matrix of more than ",
          kMatrixMax);
  std::vector<double> cosine, sine;
  HostRoom room(*context, from * to, 2 * sizeof(double));
  for (int64_t n = 0; n < from; ++n)
    for (int64_t k = 0; k < to; ++k) {
      room.check();
      // The angle is taken from the remainder, which is exact.
      const double angle =
          2 * M_PI * static_cast<double>(n * k % length) / static_cast<double>(length);
      cosine.push_back(std::cos(angle));
      sine.push_back(std::sin(angle));
    }
  return {cast(from_doubles(context, {from, to}, cosine), like.dtype()),
          cast(from_doubles(context, {from, to}, sine), like.dtype())};
}

// The transform over the last axis, `to` of its values.
Complex transformed(const Complex& x, const Dim& to, const Dim& length, bool inverse) {
  const Turns t = turns(x.real, size_along(x.real, -1), to, length);
  const Tensor sine = inverse ? neg(t.sine) : t.sine;
  Tensor real = matmul(x.real, t.cosine);
  Tensor imaginary = neg(matmul(x.real, sine));
  if (x.imaginary) {
    real = real + matmul(x.imaginary, sine);
    imaginary = imaginary + matmul(x.imaginary, t.cosine);
  }
  if (!inverse) return {real, imaginary};
  const Tensor n = cast(size_tensor(real.context_ref(), length), real.dtype());
  return {real / n, imaginary / n};
}

// The last axis cut or filled with zeros to `length`.
Tensor sized(const Tensor& x, const Dim& length) {
  Shape none(static_cast<size_t>(x.rank()), Dim(0)), more = none;
  more.back() = length - size_along(x, -1);
  return pad(x, none, more);
}

// `f` of each part that there is.
template <class F>
Complex each_part(const Complex& x, F f) {
  return {f(x.real), x.imaginary ? f(x.imaginary) : Tensor()};
}

// From the bins of a real signal to all bins: the rest are conjugates.
Complex mirrored(const Complex& x, const Dim& length) {
  const Ref<Context>& context = x.real.context_ref();
  const Tensor at = arange(context, kInt64, length), whole = size_tensor(context, length);
  const Tensor is_there = less_equal(at + at, whole);
  const Tensor from = where(is_there, at, whole - at);
  const Tensor there = gather(x.real, from, -1);
  if (!x.imaginary) return {there, number(there, 0) * there};
  const Tensor other = gather(x.imaginary, from, -1);
  return {there, where(is_there, other, neg(other))};
}

// a0 - a1 cos(t) + a2 cos(2t) over as many samples as a run finds.
Tensor cosine_window_of(const Ref<Context>& context, const Dim& size, bool periodic,
                        const std::array<double, 3>& a) {
  const Tensor at = cast(arange(context, kInt64, size), kFloat64);
  const Tensor turn = cast(size_tensor(context, periodic ? size : size - 1), kFloat64);
  const Tensor one = number(at, 1);
  // A symmetric window of one sample is its middle.
  const Tensor t = where(less(turn, one), number(at, M_PI), at * number(at, 2 * M_PI) / turn);
  return number(at, a[0]) - number(at, a[1]) * cos(t) + number(at, a[2]) * cos(t + t);
}

// a0 - a1 cos(t) + a2 cos(2t).
Tensor cosine_window(const Ref<Context>& context, const Dim& given, bool periodic, double a0,
                     double a1, double a2) {
  if (!given.is_const()) return cosine_window_of(context, given, periodic, {a0, a1, a2});
  const int64_t size = given.value();
  require(size >= 0, Status::InvalidArgument, "a window of ", size, " samples; wanted 0 or more");
  const double turn = static_cast<double>(periodic ? size : size - 1);
  std::vector<double> values;
  HostRoom room(*context, size, sizeof(double));
  for (int64_t i = 0; i < size; ++i) {
    room.check();
    // A symmetric window of one sample is its middle.
    const double t = turn == 0 ? M_PI : 2 * M_PI * static_cast<double>(i) / turn;
    values.push_back(a0 - a1 * std::cos(t) + a2 * std::cos(2 * t));
  }
  return from_doubles(context, {size}, values);
}

}  // namespace

Complex view_as_complex(const Tensor& x) {
  require(x.rank() >= 1, Status::Shape, "complex numbers of shape ", x.shape(),
          "; wanted [.., 1 or 2]");
  const int64_t parts = length_of(x, -1);
  require(parts == 1 || parts == 2, Status::Shape, "complex numbers of shape ", x.shape(),
          "; wanted [.., 1 or 2]");
  const auto part = [&](int64_t i) { return squeeze(slice_axis(x, -1, i, i + 1), {-1}); };
  return {part(0), parts == 2 ? part(1) : Tensor()};
}

Tensor view_as_real(const Complex& x) {
  require(static_cast<bool>(x.imaginary), Status::InvalidArgument,
          "complex numbers without an imaginary part");
  return stack(std::vector<Tensor>{x.real, x.imaginary}, x.real.rank());
}

Complex dft(const Complex& x, int64_t given_axis, const DftOptions& options) {
  const int64_t axis = checked_axis(given_axis, x.real.rank());
  const bool to_real = options.inverse && options.onesided;
  const Dim size = size_along(x.real, axis);
  const Dim length = options.length.value_or(to_real ? Dim(2) * (size - 1) : size);
  require(!length.is_const() || (length.value() > 0 && length.value() < kLengthMax),
          Status::InvalidArgument, "dft: a length of ", length, "; wanted 1 to ", kLengthMax - 1);
  require(!options.onesided || options.inverse || !x.imaginary, Status::InvalidArgument,
          "dft: one side of the spectrum of a complex signal; wanted a real one");
  const Dim used = to_real ? one_side(length) : length;
  // The transformed axis last.
  Complex in =
      each_part(x, [&](const Tensor& part) { return sized(transpose(part, axis, -1), used); });
  if (to_real) in = mirrored(in, length);
  const Dim bins = options.onesided && !options.inverse ? one_side(length) : length;
  Complex out = transformed(in, bins, length, options.inverse);
  if (to_real) out.imaginary = Tensor();
  return each_part(out, [&](const Tensor& part) { return transpose(part, axis, -1); });
}

Complex stft(const Complex& x, const Tensor& window, int64_t length, int64_t step, bool onesided) {
  require(x.real.rank() == 2, Status::Shape, "stft: a signal of shape ", x.real.shape(),
          "; wanted [batch, samples]");
  const Dim size = x.real.shape()[1];
  require(step > 0 && length > 0 && (!size.is_const() || length <= size.value()),
          Status::InvalidArgument, "stft: frames of ", length, " samples, ", step, " apart, of ",
          size, "; wanted both at least 1, and no more in a frame than there are");
  require(!window || (window.rank() == 1 && length_of(window, 0) == length), Status::Shape,
          "stft: a window of shape ", window ? Shape(window.shape()) : Shape(), "; wanted [",
          length, "]");
  require(!onesided || !x.imaginary, Status::InvalidArgument,
          "stft: one side of the spectrum of a complex signal; wanted a real one");
  const Dim frames = window_count(size, length, step, 1);
  const Complex in = each_part(x, [&](const Tensor& part) {
    const Tensor framed = windows(part, {length}, {step}, {1}, {frames});
    return window ? framed * window : framed;
  });
  return transformed(in, onesided ? length / 2 + 1 : length, length, false);
}

Tensor hann_window(const Ref<Context>& context, const Dim& size, bool periodic) {
  return cosine_window(context, size, periodic, 0.5, 0.5, 0);
}
Tensor hamming_window(const Ref<Context>& context, const Dim& size, bool periodic) {
  return cosine_window(context, size, periodic, 25.0 / 46, 21.0 / 46, 0);
}
Tensor blackman_window(const Ref<Context>& context, const Dim& size, bool periodic) {
  return cosine_window(context, size, periodic, 0.42, 0.5, 0.08);
}

namespace {

// The corners of all triangles in Hz, two more than there are bands.
std::vector<double> mel_hertz(int64_t bands, double low, double high) {
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double first = mel(low);
  const double step = (mel(high) - first) / static_cast<double>(bands + 2);
  std::vector<double> corners;
  for (int64_t i = 0; i < bands + 2; ++i)
    corners.push_back(700 * (std::pow(10, (first + step * static_cast<double>(i)) / 2595) - 1));
  return corners;
}

// Their bins.
Ints mel_corners(int64_t bands, int64_t length, double rate, double low, double high) {
  Ints corners;
  for (double hertz : mel_hertz(bands, low, high)) {
    const double bin = std::floor(static_cast<double>(length + 1) * hertz / rate);
    require(bin >= 0 && bin < 0x1p31, Status::InvalidArgument, "mel_weights: a corner at ", hertz,
            " Hz of ", rate, " samples a second");
    corners.push_back(static_cast<int64_t>(bin));
  }
  return corners;
}

void check_mel(int64_t bands, const Dim& length, double rate) {
  const bool is_length = !length.is_const() || (length.value() > 0 && length.value() < kLengthMax);
  require(bands > 0 && is_length && bands < (1 << 20) && rate > 0, Status::InvalidArgument,
          "mel_weights: ", bands, " bands of a transform of ", length, " samples, ", rate,
          " a second");
}

// The same weights where a run finds how many samples are transformed.
Tensor mel_weights_found(const Ref<Context>& context, int64_t bands, const Dim& length, double rate,
                         double low, double high) {
  check_mel(bands, length, rate);
  const Tensor hertz = from_doubles(context, {1, bands + 2}, mel_hertz(bands, low, high));
  const Tensor corners = floor(real_size(context, length + 1) * hertz / number(hertz, rate));
  const auto corner = [&](int64_t i) { return slice_axis(corners, 1, i, i + bands); };
  const Tensor left = corner(0), middle = corner(1), right = corner(2);
  const Tensor at = cast(positions(context, kInt64, one_side(length), 0, 2), kFloat64);
  const Tensor none = number(at, 0), one = number(at, 1);
  const Tensor up = where(equal(middle, left), one, (at - left) / (middle - left));
  const Tensor down = (right - at) / (right - middle);
  const Tensor is_down = bit_and(greater_equal(at, middle), less(at, right));
  const Tensor is_up = bit_and(greater_equal(at, left), less_equal(at, middle));
  return where(is_down, down, where(is_up, up, none));
}

}  // namespace

Tensor mel_weights(const Ref<Context>& context, int64_t bands, const Dim& samples, double rate,
                   double low, double high) {
  if (!samples.is_const()) return mel_weights_found(context, bands, samples, rate, low, high);
  const int64_t length = samples.value();
  check_mel(bands, length, rate);
  const int64_t bins = length / 2 + 1;
  require(bands * bins <= kMatrixMax, Status::Unsupported, "mel_weights: ", bins, " bins to ",
          bands, " bands need a matrix of more than ", kMatrixMax, " elements");
  const Ints corners = mel_corners(bands, length, rate, low, high);
  HostRoom room(*context, bins * bands, sizeof(double));
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
  return from_doubles(context, {bins, bands}, weights);
}

}  // namespace tiny
