// Spectra against sums of complex exponentials, windows and mel bands against their formulas.
#include "tensor/signal.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>

#include "tests/support/context.h"
#include "tests/support/failure.h"
#include "tests/support/tensors.h"

namespace tiny {
namespace {

using testing::expect_failure;
using testing::failure_of;
using testing::Floats;
using testing::floats;
using testing::floats_of;

using Numbers = std::vector<std::complex<double>>;

// sum x[n] exp(-2 pi i n k / size)
Numbers spectrum_of(const Numbers& x) {
  Numbers out(x.size());
  for (size_t k = 0; k < x.size(); ++k)
    for (size_t n = 0; n < x.size(); ++n)
      out[k] += x[n] * std::polar(1.0, -2 * M_PI * static_cast<double>(n * k) /
                                           static_cast<double>(x.size()));
  return out;
}

void expect_near(const Complex& got, const Numbers& want) {
  const Floats real = floats_of(got.real), imaginary = floats_of(got.imaginary);
  ASSERT_EQ(real.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_NEAR(real[i], want[i].real(), 1e-5) << i;
    EXPECT_NEAR(imaginary[i], want[i].imag(), 1e-5) << i;
  }
}

class Signal : public ::testing::TestWithParam<std::string> {
 protected:
  Complex real(const Floats& values) const { return {floats(context_, values), Tensor()}; }
  Ref<Context> context_ = testing::new_context(GetParam());
};

INSTANTIATE_TEST_SUITE_P(Devices, Signal, ::testing::Values("cpu", "interp"));

TEST_P(Signal, TransformsAreTheirSums) {
  // A length that is no power of two.
  const Numbers want = spectrum_of({1, 2, -1, 3, 0});
  expect_near(dft(real({1, 2, -1, 3, 0}), 0), want);
  expect_near(dft(real({1, 2, -1, 3, 0}), 0, {.onesided = true}), {want.begin(), want.begin() + 3});
  expect_near(dft(real({1, 2, -1, 3, 0}), 0, {.length = 3}), spectrum_of({1, 2, -1}));
  expect_near(dft(real({1, 2}), 0, {.length = 4}), spectrum_of({1, 2, 0, 0}));
  const Complex both{floats(context_, {1, 2, 3}), floats(context_, {0, -1, 2})};
  expect_near(dft(both, 0), spectrum_of({1, {2, -1}, {3, 2}}));
}

TEST_P(Signal, InversesGiveTheSignalBack) {
  for (const Floats& x : {Floats{1, 2, -1, 3, 0}, Floats{1, 2, -1, 3}}) {
    const Complex whole = dft(dft(real(x), 0), 0, {.inverse = true});
    const Complex bins = dft(real(x), 0, {.onesided = true});
    const Complex half = dft(bins, 0, {.inverse = true, .onesided = true, .length = std::ssize(x)});
    EXPECT_FALSE(half.imaginary);
    const Floats from_all = floats_of(whole.real), from_half = floats_of(half.real);
    ASSERT_EQ(from_half.size(), x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_NEAR(from_all[i], x[i], 1e-5);
      EXPECT_NEAR(from_half[i], x[i], 1e-5);
    }
  }
}

TEST_P(Signal, OtherAxesStay) {
  // Columns [1, 2, 3] and [0, 1, 0].
  const Complex x{floats(context_, {1, 0, 2, 1, 3, 0}, {3, 2}), Tensor()};
  const Numbers first = spectrum_of({1, 2, 3}), second = spectrum_of({0, 1, 0});
  expect_near(dft(x, -2), {first[0], second[0], first[1], second[1], first[2], second[2]});
}

TEST_P(Signal, PartsLieBesideEachOther) {
  const Tensor parts = floats(context_, {1, 2, 3, 4}, {2, 2});
  const Complex x = view_as_complex(parts);
  expect_near(x, {{1, 2}, {3, 4}});
  EXPECT_EQ(floats_of(view_as_real(x)), floats_of(parts));
}

TEST_P(Signal, FramesAreTransformedApart) {
  const Complex x{floats(context_, {1, 2, 3, 4, 5, 6}, {1, 6}), Tensor()};
  const Tensor window = floats(context_, {1, 2, 1});
  Numbers want = spectrum_of({1, 4, 3});
  const Numbers next = spectrum_of({3, 8, 5});
  want.insert(want.end(), next.begin(), next.end());
  const Complex all = stft(x, window, 3, 2, false);
  EXPECT_EQ(const_dims(all.real.shape()), (Ints{1, 2, 3}));
  expect_near(all, want);
  expect_near(stft(x, window, 3, 2), {want[0], want[1], want[3], want[4]});
  EXPECT_EQ(const_dims(stft(x, Tensor(), 2, 1).real.shape()), (Ints{1, 5, 2}));
}

TEST_P(Signal, WindowsAreSumsOfCosines) {
  const auto window = [&](Tensor made) {
    std::vector<double> out(static_cast<size_t>(element_count(made)));
    read(made, out.data(), std::ssize(out) * 8);
    return out;
  };
  const std::vector<double> hann = window(hann_window(context_, 4));
  EXPECT_NEAR(hann[0], 0, 1e-12);
  EXPECT_NEAR(hann[1], 0.5, 1e-12);
  EXPECT_NEAR(hann[2], 1, 1e-12);
  const std::vector<double> symmetric = window(blackman_window(context_, 5, false));
  EXPECT_NEAR(symmetric[0], symmetric[4], 1e-12);
  EXPECT_NEAR(symmetric[1], 0.42 - 0.08, 1e-12);
  EXPECT_NEAR(symmetric[2], 1, 1e-12);
  EXPECT_NEAR(window(hamming_window(context_, 3))[0], 4.0 / 46, 1e-12);
  EXPECT_EQ(window(hann_window(context_, 1, false)), std::vector<double>{1});
  EXPECT_EQ(window(hann_window(context_, 0)), std::vector<double>{});
}

TEST_P(Signal, MelBandsAreTriangles) {
  // Corners at 0, 1 and 3: log10 of 1 + f / 700 grows by equal steps up to two of three.
  const double top = 700 * (std::pow(10, 1.5 * std::log10(1 + 3.5 / 700)) - 1);
  Tensor made = mel_weights(context_, 1, 8, 9, 0, top);
  std::vector<double> got(5);
  read(made, got.data(), 40);
  EXPECT_EQ(got, (std::vector<double>{0, 1, 0.5, 0, 0}));
}

TEST_P(Signal, MistakesAreNamed) {
  const Complex x = real({1, 2, 3});
  const Complex both{x.real, x.real};
  expect_failure(failure_of([&] { dft(both, 0, {.onesided = true}); }), Status::InvalidArgument,
                 {"complex", "wanted a real one"});
  expect_failure(failure_of([&] { dft(x, 0, {.length = 0}); }), Status::InvalidArgument,
                 {"length of 0"});
  expect_failure(failure_of([&] { dft(x, 1); }), Status::Shape, {"axis 1"});
  expect_failure(failure_of([&] { dft(x, 0, {.length = 1 << 20}); }), Status::Unsupported,
                 {"matrix"});
  expect_failure(failure_of([&] { stft(x, Tensor(), 2, 1); }), Status::Shape,
                 {"[3]", "[batch, samples]"});
  const Complex row{floats(context_, {1, 2, 3}, {1, 3}), Tensor()};
  expect_failure(failure_of([&] { stft(row, Tensor(), 4, 1); }), Status::InvalidArgument,
                 {"frames of 4"});
  expect_failure(failure_of([&] { stft(row, floats(context_, {1}), 2, 1); }), Status::Shape,
                 {"window of shape [1]", "[2]"});
  expect_failure(failure_of([&] { view_as_complex(x.real); }), Status::Shape, {"[3]"});
  expect_failure(failure_of([&] { hann_window(context_, -1); }), Status::InvalidArgument, {"-1"});
  expect_failure(failure_of([&] { mel_weights(context_, 0, 8, 9, 0, 1); }), Status::InvalidArgument,
                 {"0 bands"});
}

}  // namespace
}  // namespace tiny
