// The sets of a window's instances that one branch jumps over.
#include "codegen/linearize/window_edges.h"

#include <gtest/gtest.h>

#include "ir/build.h"
#include "tests/codegen/linearize/nest_kernel.h"

namespace tiny {
namespace {

WindowSides sides_of(testing::NestKernel& k, const std::vector<UOp>& conditions) {
  LoopNest nest(k.kernel);
  IndexForms forms(nest);
  Prover prover(nest, forms);
  nest.open_loop(0, 0, 1);
  const EachInstance each = [&](const std::function<void(size_t)>& body) {
    nest.for_each_instance(nest.unrolled(), body);
  };
  WindowSides out = sides_of_window(conditions, each, forms, prover);
  nest.close(0);
  return out;
}

// A window of 5 x 8: its first two rows may lie above the image.
TEST(WindowSides, StandTogetherByTheEdgesThatLeaveThemOut) {
  testing::NestKernel k;
  const UOp loop = k.range(16, RangeKind::Loop);
  const UOp row = k.range(5, RangeKind::Unroll);
  k.range(8, RangeKind::Unroll);
  const WindowSides window = sides_of(k, {add(add(loop, row), -2)});
  ASSERT_EQ(window.sides.size(), 3u);
  EXPECT_EQ(window.sides[0].count, 24u);
  EXPECT_TRUE(window.sides[0].edges.empty());
  EXPECT_EQ(window.sides[1].count, 8u);
  EXPECT_EQ(window.sides[1].edges.front().constant, -2);
  EXPECT_EQ(window.sides[2].edges.front().constant, -1);
  EXPECT_EQ(window.stand_with, (std::vector<size_t>{0, 1, 2}));
  ASSERT_EQ(window.side_of.size(), 40u);
  EXPECT_EQ(window.side_of[0], 1u);
  EXPECT_EQ(window.side_of[8], 2u);
  EXPECT_EQ(window.side_of[39], 0u);
}

// A corner of few instances goes with the row that it lies in.
TEST(WindowSides, OfFewGoWithALargerOne) {
  testing::NestKernel k;
  const UOp loop = k.range(16, RangeKind::Loop);
  const UOp row = k.range(3, RangeKind::Unroll);
  const UOp column = k.range(8, RangeKind::Unroll);
  const WindowSides window = sides_of(k, {add(add(loop, row), -1), add(add(loop, column), -1)});
  ASSERT_EQ(window.sides.size(), 4u);
  EXPECT_EQ(window.sides[1].edges.size(), 2u);  // row 0, column 0
  EXPECT_EQ(window.sides[1].count, 1u);
  EXPECT_EQ(window.sides[2].edges.size(), 1u);  // row 0
  EXPECT_EQ(window.sides[2].count, 7u);
  EXPECT_EQ(window.sides[3].count, 2u);  // column 0
  EXPECT_EQ(window.stand_with, (std::vector<size_t>{0, 2, 2, 0}));
}

}  // namespace
}  // namespace tiny
