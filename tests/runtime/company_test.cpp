// When work is shared again after a worker that held a piece did not run.
#include "runtime/cpu/company.h"

#include <gtest/gtest.h>

namespace tiny {
namespace {

constexpr int64_t kMicro = 1000, kMilli = 1000 * kMicro;

TEST(Company, AnEvenSplitIsShared) {
  Company company;
  EXPECT_TRUE(company.is_welcome(0));
  company.noticed(kMilli, 20 * kMicro, 30 * kMicro);
  EXPECT_TRUE(company.is_welcome(kMilli));
  company.noticed(100 * kMilli, 4 * kMilli, 3 * kMilli);  // long pieces end apart
  EXPECT_TRUE(company.is_welcome(100 * kMilli));
}

TEST(Company, AStallIsFollowedByTimeAlone) {
  Company company;
  company.noticed(10 * kMilli, 3 * kMilli, 30 * kMicro);
  EXPECT_FALSE(company.is_welcome(11 * kMilli));
  EXPECT_TRUE(company.is_welcome(22 * kMilli));
}

TEST(Company, StallsThatComeAgainMakeItLonger) {
  Company company;
  int64_t now = 0;
  const auto next_alone = [&] {
    company.noticed(now, 3 * kMilli, 30 * kMicro);
    const int64_t begin = now;
    while (!company.is_welcome(now)) now += kMilli;
    return now - begin;
  };
  EXPECT_EQ(next_alone(), 12 * kMilli);
  EXPECT_EQ(next_alone(), 24 * kMilli);
  for (int i = 0; i < 10; ++i) next_alone();
  EXPECT_EQ(next_alone(), 250 * kMilli) << "a neighbour that leaves is noticed soon";
  now += 1000 * kMilli;
  EXPECT_EQ(next_alone(), 12 * kMilli) << "what was long ago is forgotten";
}

}  // namespace
}  // namespace tiny
