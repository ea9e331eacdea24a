// Sampled pictures against sums over neighbours, place by place.
#include "tensor/grid_sample.h"

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

constexpr int kHeight = 3;
constexpr int kWidth = 4;

double pixel(int y, int x) {
  return 10 * y + x * x;
}

// Mirrored once: the places of these tests lie no further away.
int reflected(int i, int n, bool align) {
  if (i < 0) i = align ? -i : -i - 1;
  if (i >= n) i = align ? 2 * (n - 1) - i : 2 * n - 1 - i;
  return std::clamp(i, 0, n - 1);
}

double at(int y, int x, const GridSampleOptions& options) {
  const bool inside = y >= 0 && y < kHeight && x >= 0 && x < kWidth;
  if (!inside && options.padding == GridPadding::Zeros) return 0;
  if (options.padding == GridPadding::Reflection)
    return pixel(reflected(y, kHeight, options.align_corners),
                 reflected(x, kWidth, options.align_corners));
  return pixel(std::clamp(y, 0, kHeight - 1), std::clamp(x, 0, kWidth - 1));
}

double weight(double distance, Interpolation mode) {
  const double d = std::fabs(distance), a = -0.75;
  if (mode == Interpolation::Linear) return std::max(0.0, 1 - d);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

// The picture at (y, x) of -1 .. 1.
double sample(double y, double x, const GridSampleOptions& options) {
  const auto place = [&](double g, int n) {
    return options.align_corners ? (g + 1) / 2 * (n - 1) : ((g + 1) * n - 1) / 2;
  };
  const double py = place(y, kHeight), px = place(x, kWidth);
  if (options.mode == Interpolation::Nearest)
    return at(static_cast<int>(std::nearbyint(py)), static_cast<int>(std::nearbyint(px)), options);
  double sum = 0;
  for (int i = -8; i < 12; ++i)
    for (int j = -8; j < 12; ++j)
      sum += weight(py - i, options.mode) * weight(px - j, options.mode) * at(i, j, options);
  return sum;
}

class GridSample : public ::testing::TestWithParam<std::string> {
 protected:
  Ref<Context> context_ = testing::new_context(GetParam());
};

INSTANTIATE_TEST_SUITE_P(Devices, GridSample, ::testing::Values("cpu", "interp"));

TEST_P(GridSample, EveryModeIsASumOverNeighbours) {
  Floats picture;
  for (int y = 0; y < kHeight; ++y)
    for (int x = 0; x < kWidth; ++x) picture.push_back(static_cast<float>(pixel(y, x)));
  const Tensor x = floats(context_, picture, {1, 1, kHeight, kWidth});
  const Floats places = {0, 0, -1, -1, 1, 1, 0.3f, -0.7f, -1.3f, 0.2f, 0.9f, 1.4f};  // x, y
  const Tensor grid = floats(context_, places, {1, 2, 3, 2});
  for (auto mode : {Interpolation::Nearest, Interpolation::Linear, Interpolation::Cubic})
    for (auto padding : {GridPadding::Zeros, GridPadding::Border, GridPadding::Reflection})
      for (bool align : {false, true}) {
        const GridSampleOptions options{mode, padding, align};
        const Tensor out = grid_sample(x, grid, options);
        EXPECT_EQ(const_dims(out.shape()), (Ints{1, 1, 2, 3}));
        const Floats got = floats_of(out);
        for (size_t i = 0; i < got.size(); ++i)
          EXPECT_NEAR(got[i], sample(places[2 * i + 1], places[2 * i], options), 1e-3)
              << "point " << i << ", mode " << static_cast<int>(mode) << ", padding "
              << static_cast<int>(padding) << ", align " << align;
      }
}

TEST_P(GridSample, AnyNumberOfAxes) {
  const Tensor row = floats(context_, {1, 3, 5, 7}, {1, 2, 2});
  EXPECT_EQ(floats_of(grid_sample(row, floats(context_, {0}, {1, 1, 1}))), (Floats{2, 6}));
  const Tensor cube = floats(context_, {0, 1, 2, 3, 4, 5, 6, 7}, {1, 1, 2, 2, 2});
  const Tensor middle = floats(context_, {0, 0, 0}, {1, 1, 1, 1, 3});
  EXPECT_EQ(floats_of(grid_sample(cube, middle)), Floats{3.5f});
}

TEST_P(GridSample, NoNumberSamplesSomething) {
  const Tensor row = floats(context_, {1, 3}, {1, 1, 2});
  const Tensor grid = floats(context_, {NAN, INFINITY}, {1, 2, 1});
  const Floats got =
      floats_of(grid_sample(row, grid, {Interpolation::Nearest, GridPadding::Border, false}));
  EXPECT_EQ(got[0], 1);
  EXPECT_EQ(got[1], 3);
}

TEST_P(GridSample, AffineGridsMovePoints) {
  // x' = 2x + 1, y' = y - x
  const Tensor theta = floats(context_, {2, 0, 1, -1, 1, 0}, {1, 2, 3});
  // Rows at -1/2 and 1/2, columns at -2/3, 0 and 2/3.
  Floats want;
  for (double y : {-0.5, 0.5})
    for (double x : {-2.0 / 3, 0.0, 2.0 / 3}) {
      want.push_back(static_cast<float>(2 * x + 1));
      want.push_back(static_cast<float>(y - x));
    }
  const Floats got = floats_of(affine_grid(theta, {2, 3}));
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-6) << i;
  EXPECT_EQ(floats_of(affine_grid(theta, {1, 2}, true)), (Floats{-1, 0, 3, -2}));
}

// What is sampled there has lanes, as behind points that are in memory.
TEST_P(GridSample, AffineGridsReduceNothing) {
  const Tensor theta = floats(context_, {2, 0, 1, -1, 1, 0, 1, 0, 0, 0, 1, 0}, {2, 2, 3});
  const UOp root[] = {affine_grid(theta, {4, 5}).node()};
  for (const UOp& node : topological(root)) EXPECT_NE(node.op(), Op::ReduceAxis);
}

TEST(GridSampleErrors, MistakesAreNamed) {
  const Ref<Context> context = testing::new_context("interp");
  const Tensor x = floats(context, {1, 2}, {1, 1, 2});
  expect_failure(failure_of([&] { grid_sample(x, floats(context, {0}, {1, 1})); }), Status::Shape,
                 {"[1, 1]", "[1, 1, 2]"});
  expect_failure(failure_of([&] { grid_sample(x, floats(context, {0, 0}, {1, 1, 2})); }),
                 Status::Shape, {"wanted 1 first and 1 last"});
  expect_failure(failure_of([&] { affine_grid(x, {2, 2}); }), Status::Shape, {"theta", "[2, 2]"});
  const Tensor none = floats(context, {}, {1, 1, 0});
  expect_failure(failure_of([&] { grid_sample(none, floats(context, {0}, {1, 1, 1})); }),
                 Status::Shape, {"no elements"});
}

}  // namespace
}  // namespace tiny
