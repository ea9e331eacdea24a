// When work is shared again after a worker that held a piece did not run.
#include "runtime/cpu/company.h"

#include <gtest/gtest.h>

namespace tiny {
namespace {

constexpr int64_t kMicro = 1000, kMilli = 1000 * kMicro;

TEST(Company, AnEvenSplitIsShared) {
  Company company;
  EXPECT_TRUE(company.is_welcome());
  company.was_shared(kMilli, 20 * kMicro, 30 * kMicro);
  EXPECT_TRUE(company.is_welcome());
  company.was_shared(20 * kMilli, 4 * kMilli, 3 * kMilli);  // long pieces end apart
  EXPECT_TRUE(company.is_welcome());
}

TEST(Company, AStallIsFollowedByWorkAlone) {
  Company company;
  company.was_shared(4 * kMilli, 3 * kMilli, 30 * kMicro);
  EXPECT_FALSE(company.is_welcome());
  company.was_alone(23 * kMilli);
  EXPECT_FALSE(company.is_welcome());
  company.was_alone(kMilli);
  EXPECT_TRUE(company.is_welcome());
}

TEST(Company, StallsThatComeAgainMakeItLonger) {
  Company company;
  const auto alone_after_stall = [&] {
    company.was_shared(4 * kMilli, 3 * kMilli, 30 * kMicro);
    int64_t alone = 0;
    for (; !company.is_welcome(); alone += kMilli) company.was_alone(kMilli);
    return alone / kMilli;
  };
  EXPECT_EQ(alone_after_stall(), 24);
  company.was_shared(10 * kMilli, 0, kMilli);
  EXPECT_EQ(alone_after_stall(), 96);
  for (int i = 0; i < 10; ++i) alone_after_stall();
  EXPECT_EQ(alone_after_stall(), 250) << "a neighbour that leaves is noticed soon";
  company.was_shared(30 * kMilli, 0, kMilli);
  EXPECT_EQ(alone_after_stall(), 24) << "a stall now and then costs less than work alone";
}

}  // namespace
}  // namespace tiny
