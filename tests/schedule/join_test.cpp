// What is told of joins, and single ones decided the other way.
#include "schedule/join.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "schedule/schedule.h"
#include "tensor/activation.h"
#include "tests/support/failure.h"
#include "tests/support/graph_test.h"

namespace tiny {
namespace {

TEST(Join, NumbersOfJoinsAreRead) {
  EXPECT_EQ(parse_joins(""), std::vector<int64_t>{});
  EXPECT_EQ(parse_joins("3,17"), (std::vector<int64_t>{3, 17}));
  for (const char* bad : {"x", "3,,4", "3 4", "-1", ",", "99999999999999999999"})
    testing::expect_failure(testing::failure_of([&] { parse_joins(bad); }), Status::InvalidArgument,
                            {"flip_joins"});
}

class JoinTest : public testing::GraphTest {};

// The exponentials of a softmax and their sum have no buffers, unless one is kept from joining.
TEST_F(JoinTest, AFlippedJoinIsDecidedTheOtherWay) {
  const Tensor t = softmax(given({64, 128}), 1);
  const UOp wanted = t.graph().make(Op::Contiguous, {t.node()});
  const auto count = [&](const JoinSettings& settings) {
    return make_schedule({&wanted, 1}, avx512_target(), true, settings).kernels.size();
  };
  std::vector<JoinTrial> trials;
  EXPECT_EQ(count({{}, &trials, nullptr}), 1U);
  ASSERT_FALSE(trials.empty());
  for (const JoinTrial& trial : trials) {
    EXPECT_TRUE(trial.joined);
    EXPECT_LE(trial.cost.paid(), trial.cost.saved());
    std::vector<JoinTrial> flipped;
    EXPECT_GT(count({{trial.number}, &flipped, nullptr}), 1U);
    const auto same = std::ranges::find(flipped, trial.number, &JoinTrial::number);
    ASSERT_NE(same, flipped.end());
    EXPECT_FALSE(same->joined);
    EXPECT_EQ(same->cost[JoinPart::Traffic], trial.cost[JoinPart::Traffic]);
  }
}

}  // namespace
}  // namespace tiny
