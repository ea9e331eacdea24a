// Resized axes against the definition of each mode, element by element.
#include "tensor/resize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

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

void expect_near(const Floats& got, const Floats& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-5) << i;
}

class Resize : public ::testing::TestWithParam<std::string> {
 protected:
  Ref<Context> context_ = testing::new_context(GetParam());
  const Floats row_ = {1, 4, 2, 8};
  Floats of(const Floats& values, int64_t size, const ResizeOptions& options) const {
    return floats_of(resize(floats(context_, values), {0}, {size}, options));
  }
  Floats of(int64_t size, Interpolation mode, Coordinates coordinates) const {
    return of(row_, size, {.mode = mode, .coordinates = coordinates});
  }
  // The row at these places, between neighbours; beyond the ends, the ends.
  Floats linear_at(const std::vector<double>& places) const {
    Floats out;
    for (double x : places) {
      const double at = std::clamp(x, 0.0, 3.0);
      const auto low = static_cast<size_t>(std::min(2.0, std::floor(at)));
      const double t = at - static_cast<double>(low);
      out.push_back(static_cast<float>((1 - t) * row_[low] + t * row_[low + 1]));
    }
    return out;
  }
};

INSTANTIATE_TEST_SUITE_P(Devices, Resize, ::testing::Values("cpu", "interp"));

TEST_P(Resize, CoordinatesAreWhereTheyAreSaidToBe) {
  const auto linear = [&](int64_t size, Coordinates coordinates) {
    return of(size, Interpolation::Linear, coordinates);
  };
  expect_near(linear(8, Coordinates::HalfPixel),
              linear_at({-.25, .25, .75, 1.25, 1.75, 2.25, 2.75, 3.25}));
  expect_near(linear(8, Coordinates::Asymmetric), linear_at({0, .5, 1, 1.5, 2, 2.5, 3, 3.5}));
  expect_near(linear(7, Coordinates::AlignCorners), linear_at({0, .5, 1, 1.5, 2, 2.5, 3}));
  expect_near(linear(2, Coordinates::HalfPixel), linear_at({.5, 2.5}));
  expect_near(linear(1, Coordinates::HalfPixel), linear_at({1.5}));
  expect_near(linear(1, Coordinates::AlignCorners), linear_at({0}));
  expect_near(linear(1, Coordinates::PytorchHalfPixel), linear_at({-.5}));
  // 4 * 1.4 = 5.6: five elements, moved by 0.3 / 1.4 towards the middle.
  std::vector<double> places;
  for (int i = 0; i < 5; ++i) places.push_back((i + 0.5) / 1.4 - 0.5 + 2 * (1 - 5 / 5.6));
  expect_near(floats_of(resize_by(
                  floats(context_, row_), {0}, {1.4},
                  {.mode = Interpolation::Linear, .coordinates = Coordinates::HalfPixelSymmetric})),
              linear_at(places));
}

TEST_P(Resize, RegionsAreCutOut) {
  ResizeOptions options{.mode = Interpolation::Linear,
                        .coordinates = Coordinates::CropAndResize,
                        .extrapolation_value = -9,
                        .region = {1.0 / 3, 4.0 / 3}};
  // From element 1 to element 4, which is outside.
  Floats want = linear_at({1, 2, 3});
  want.push_back(-9);
  expect_near(of(row_, 4, options), want);
}

// A region that a run finds is cut out as one of numbers is.
TEST_P(Resize, RegionsMayBeFound) {
  for (const Interpolation mode : {Interpolation::Nearest, Interpolation::Linear})
    for (const std::vector<double>& region :
         {std::vector<double>{0, 1}, {0.25, 0.75}, {0.5, 1.5}, {1, 0.25}})
      for (const int64_t size : {1, 3, 4, 7}) {
        ResizeOptions options{.mode = mode,
                              .coordinates = Coordinates::CropAndResize,
                              .extrapolation_value = -9,
                              .region = region};
        const Floats want = of(row_, size, options);
        options.region.clear();
        options.found_region =
            floats(context_, {static_cast<float>(region[0]), static_cast<float>(region[1])});
        expect_near(of(row_, size, options), want);
      }
  ResizeOptions options{.coordinates = Coordinates::CropAndResize,
                        .found_region = floats(context_, {0, 1, 0})};
  expect_failure(failure_of([&] { of(row_, 4, options); }), Status::InvalidArgument,
                 {"a region of shape", "wanted [2]"});
}

TEST_P(Resize, NearestRoundsAsItIsAsked) {
  const auto nearest = [&](NearestMode mode) {
    return of(row_, 2,
              {.coordinates = Coordinates::HalfPixel, .nearest_mode = mode});  // at 0.5, 2.5
  };
  EXPECT_EQ(nearest(NearestMode::RoundPreferFloor), (Floats{1, 2}));
  EXPECT_EQ(nearest(NearestMode::RoundPreferCeil), (Floats{4, 8}));
  EXPECT_EQ(nearest(NearestMode::Floor), (Floats{1, 2}));
  EXPECT_EQ(nearest(NearestMode::Ceil), (Floats{4, 8}));
}

TEST_P(Resize, CubicIsKeysKernel) {
  // At distance 1/4 and 3/4 from the middle two, 5/4 and 7/4 from the others; a = -0.75.
  const double a = -0.75;
  const auto near = [&](double x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
  const auto far = [&](double x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
  const double weights[] = {far(1.25), near(.25), near(.75), far(1.75)};
  // Place 3 of 8 lies at 1.25.
  double want = 0;
  for (size_t i = 0; i < 4; ++i) want += weights[i] * row_[i];
  const ResizeOptions cubic{.mode = Interpolation::Cubic};
  EXPECT_NEAR(of(row_, 8, cubic)[3], want, 1e-5);
  // Place 0 lies at -0.25: elements 0 and 1 alone, weighted anew.
  ResizeOptions inside = cubic;
  inside.exclude_outside = true;
  EXPECT_NEAR(of(row_, 8, inside)[0], (near(.25) * 1 + far(1.25) * 4) / (near(.25) + far(1.25)),
              1e-5);
}

TEST_P(Resize, AntialiasWidensTheKernel) {
  // Half as many: triangles of half-width 2 around 0.5 and 2.5, cut at the ends by repetition.
  const auto at = [&](double x) {
    double sum = 0, total = 0;
    for (int i = -4; i < 8; ++i) {
      const double w = std::max(0.0, 1 - std::fabs(i - x) / 2);
      sum += w * row_[static_cast<size_t>(std::clamp(i, 0, 3))];
      total += w;
    }
    return static_cast<float>(sum / total);
  };
  expect_near(of(row_, 2, {.mode = Interpolation::Linear, .antialias = true}), {at(.5), at(2.5)});
}

TEST_P(Resize, ProportionsAreKept) {
  const Tensor x = floats(context_, Floats(24), {4, 6});
  const auto shape = [&](AspectRatio policy) {
    return const_dims(resize(x, {0, 1}, {8, 9}, {.aspect_ratio = policy}).shape());
  };
  EXPECT_EQ(shape(AspectRatio::Stretch), (Ints{8, 9}));
  EXPECT_EQ(shape(AspectRatio::NotLarger), (Ints{6, 9}));
  EXPECT_EQ(shape(AspectRatio::NotSmaller), (Ints{8, 12}));
}

TEST_P(Resize, IntegersAreWeightedAsFloats) {
  const uint8_t values[] = {0, 100};
  const Tensor x = from_data(context_, kUInt8, {2}, values, 2);
  std::vector<uint8_t> got(4);
  Tensor out = resize_by(x, {-1}, {2}, {.mode = Interpolation::Linear});
  read(out, got.data(), 4);
  EXPECT_EQ(got, (std::vector<uint8_t>{0, 25, 75, 100}));
}

TEST_P(Resize, StretchingIsResizingWithAsymmetricCoordinates) {
  const Tensor x = floats(context_, row_);
  expect_near(
      floats_of(stretch_linear(x, 0, 2.5)),
      floats_of(resize_by(
          x, {0}, {2.5}, {.mode = Interpolation::Linear, .coordinates = Coordinates::Asymmetric})));
}

TEST_P(Resize, WhatHasNoElementsStaysEmpty) {
  const Tensor none = floats(context_, {}, {0, 2});
  EXPECT_EQ(const_dims(resize(none, {0}, {0}).shape()), (Ints{0, 2}));
  EXPECT_EQ(const_dims(resize(none, {1}, {4}).shape()), (Ints{0, 4}));
  EXPECT_EQ(const_dims(resize_by(floats(context_, row_), {0}, {0.1},
                                 {.mode = Interpolation::Linear, .antialias = true})
                           .shape()),
            Ints{0});
}

TEST(ResizeErrors, MistakesAreNamed) {
  const Ref<Context> context = testing::new_context("interp");
  const Tensor x = floats(context, {1, 2, 3, 4}, {2, 2});
  const auto failure = [&](const Ints& axes, const Ints& sizes, const ResizeOptions& options) {
    return failure_of([&] { resize(x, axes, to_shape(sizes), options); });
  };
  expect_failure(failure({0, 1}, {4}, {}), Status::InvalidArgument, {"1 sizes", "2 axes"});
  expect_failure(failure({0}, {-1}, {}), Status::InvalidArgument, {"-1 elements"});
  expect_failure(failure({0}, {4}, {.region = {0}}), Status::InvalidArgument,
                 {"1 numbers", "wanted 2"});
  expect_failure(failure({0}, {4}, {.region = {0, std::nan("")}}), Status::InvalidArgument,
                 {"region"});
  expect_failure(failure({2}, {4}, {}), Status::Shape, {"axis 2"});
  expect_failure(failure_of([&] { resize_by(x, {0}, {0}); }), Status::InvalidArgument,
                 {"scale is 0"});
  expect_failure(failure_of([&] { resize_by(x, {0}, {1e12}); }), Status::InvalidArgument,
                 {"elements"});
  const Tensor none = floats(context, {}, {0});
  expect_failure(failure_of([&] { resize(none, {0}, {4}); }), Status::Shape, {"no elements"});
}

}  // namespace
}  // namespace tiny
