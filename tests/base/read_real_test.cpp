#include "base/read_real.h"

#include <gtest/gtest.h>

#include <clocale>
#include <cmath>

namespace tiny {
namespace {

TEST(ReadReal, ReadsAllOfATextOrNothing) {
  EXPECT_EQ(read_real<double>("0.1"), 0.1);
  EXPECT_EQ(read_real<float>("-1.25e-3"), -1.25e-3f);
  for (const char* wrong : {"", "1x", "1 ", "1,5", "e5", "-", "one"})
    EXPECT_FALSE(read_real<double>(wrong)) << wrong;
  EXPECT_FALSE(read_real<float>(std::string("1\0", 2)));
}

TEST(ReadReal, TakesTheNearestOfItsTypeWithoutAWayThroughAnother) {
  // Next to the middle of two floats: a double on the way rounds it there, and then to the even
  // one.
  EXPECT_EQ(read_real<float>("1.00000017881393432617187499"), 1.00000011920928955f);
  EXPECT_EQ(read_real<float>("1e39"), INFINITY);
  EXPECT_EQ(read_real<double>("-1e999"), -INFINITY);
  EXPECT_EQ(read_real<double>("1e-999"), 0);
  EXPECT_EQ(read_real<float>("1e-45"), 1.40129846e-45f);
  EXPECT_TRUE(std::isnan(*read_real<float>("nan")));
}

TEST(ReadReal, ReadsAPointInEveryLocale) {
  for (const char* locale : {"de_DE.UTF-8", "fr_FR.UTF-8", "C.UTF-8"}) {
    if (!std::setlocale(LC_NUMERIC, locale)) continue;
    EXPECT_EQ(read_real<double>("2.5"), 2.5);
    EXPECT_FALSE(read_real<double>("2,5"));
  }
  std::setlocale(LC_NUMERIC, "C");
}

}  // namespace
}  // namespace tiny
