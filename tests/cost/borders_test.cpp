// Where accesses reach beyond what they read, and the turns of loops that this takes.
#include "cost/borders.h"

#include <gtest/gtest.h>

#include "ir/build.h"
#include "ir/uop.h"

namespace tiny {
namespace {

class BordersTest : public ::testing::Test {
 protected:
  UOp number(int64_t value) { return graph_.integer(value); }
  UOp range(int64_t which, int64_t size) { return graph_.make(Op::Range, {number(size)}, which); }
  Graph graph_;
};

TEST_F(BordersTest, AWindowReachesItsBorderOnBothSides) {
  const UOp place = range(0, 16), tap = range(1, 5);
  const UOp index = add(add(place, tap), number(-2));
  const Reach reach = reach_beyond(index, 16, {});
  EXPECT_EQ(reach.before, 2);
  EXPECT_EQ(reach.behind, 2);
  EXPECT_EQ(turns_beyond(reach, affine(index), tap), 2);
  const UOp dilated = add(add(place, mul(tap, 2)), number(-4));
  EXPECT_EQ(turns_beyond(reach_beyond(dilated, 16, {}), affine(dilated), tap), 2);
  EXPECT_EQ(turns_beyond(reach_beyond(dilated, 16, {}), affine(dilated), place), 4);
}

// Of tiles of which the last does not fit nothing is behind the range where the kernel's fact says
// so; a border behind it still is.
TEST_F(BordersTest, FactsKeepTheLastTileWithin) {
  const UOp tile = range(0, 4), lane = range(1, 16);
  const UOp place = add(mul(tile, 16), lane);
  const UOp within = add(mul(place, -1), number(55));  // 56 places
  EXPECT_EQ(reach_beyond(place, 56, {}).most(), 8);
  EXPECT_EQ(reach_beyond(place, 56, {{within}}).most(), 0);
  const UOp ahead = add(mul(place, 2), number(3));
  EXPECT_EQ(reach_beyond(ahead, 112, {{within}}).behind, 2);
}

TEST_F(BordersTest, WhatIsNoSumSaysNothingOfItsTurns) {
  const UOp place = range(0, 16);
  const UOp index = add(floor_div(place, number(3)), number(-1));
  EXPECT_GT(turns_beyond(reach_beyond(index, 4, {}), affine(index), place), 1e9);
}

}  // namespace
}  // namespace tiny
