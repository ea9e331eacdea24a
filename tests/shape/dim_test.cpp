// Dimensions over Variables: arithmetic that is that of numbers, with one expression for what is
// equal.
#include <gtest/gtest.h>

#include <random>

#include "base/checked.h"
#include "ir/fold.h"
#include "shape/shape.h"

namespace tiny {
namespace {

class Dims : public ::testing::Test {
 protected:
  int64_t value_of(const Dim& dim, int64_t s, int64_t t) {
    const UOp inputs[] = {s_.expression(), t_.expression()};
    const uint64_t values[] = {static_cast<uint64_t>(s), static_cast<uint64_t>(t)};
    return static_cast<int64_t>(Evaluator(dim.uop(graph_), inputs)(values));
  }

  Graph graph_;
  Dim s_ = Dim(graph_.variable("s", 2, 1000)), t_ = Dim(graph_.variable("t", 1, 50));
};

TEST_F(Dims, QuotientsOfStridedWindowsAreOneExpression) {
  EXPECT_EQ(floor_div(floor_div(s_, 2), 2), floor_div(s_, 4));
  EXPECT_EQ(floor_div(floor_div(s_, 4), 2), floor_div(floor_div(s_, 2), 4));
  EXPECT_EQ(floor_div(s_ - 1, 2) + 1, floor_div(s_ + 1, 2));
  EXPECT_EQ(floor_div(floor_div(s_ + 1, 2) + 1, 2), floor_div(s_ + 3, 4));
  EXPECT_EQ(floor_div(s_ * 6 + 5, 2), s_ * 3 + 2);
  EXPECT_EQ(floor_div(s_ * 6 + 5, 4), floor_div(s_ * 3, 2) + floor_div(s_ * 0 + 5, 4) +
                                          (floor_div(s_ * 3 + 2, 2) - floor_div(s_ * 3, 2) - 1));
  EXPECT_EQ(floor_div(s_ * 4 + t_ * 2 + 7, 4), s_ + floor_div(t_ + 1, 2) + 1);
  EXPECT_EQ(floor_div(s_ + 2000, 4000), Dim(0));
  EXPECT_TRUE(decide_equal(floor_div(floor_div(s_ - 1, 2) - 2 + 2, 2) + 1, floor_div(s_ + 3, 4)));
}

// Chains of what windows, paddings and joins do to a size, with numbers beside them.
TEST_F(Dims, AreWhatNumbersAre) {
  std::mt19937 random(7);
  const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % uint64_t(n)); };
  for (int chain = 0; chain < 400; ++chain) {
    const int64_t s = 2 + below(999), t = 1 + below(50);
    Dim dim = s_;
    int64_t want = s;
    for (int step = 0; step < 7; ++step) {
      const int64_t n = 1 + below(9);
      switch (below(6)) {
        case 0:
          dim = dim + (n - 5);
          want += n - 5;
          break;
        case 1:
          dim = dim * (n % 4 + 1);
          want *= n % 4 + 1;
          break;
        case 2:
          dim = dim + t_ * n;
          want += t * n;
          break;
        case 3:
          dim = n - dim;
          want = n - want;
          break;
        default:
          dim = floor_div(dim, n);
          want = floor_div(want, n);
      }
      ASSERT_EQ(value_of(dim, s, t), want) << to_string(dim) << " of s=" << s << ", t=" << t;
    }
  }
}

}  // namespace
}  // namespace tiny
