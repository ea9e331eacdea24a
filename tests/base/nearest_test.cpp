#include "base/nearest.h"

#include <gtest/gtest.h>

namespace tiny {
namespace {

TEST(DidYouMean, names_the_nearest_of_what_is_known) {
  const std::vector<std::string> known = {"device", "beam", "threads", "cache", "cache_dir"};
  EXPECT_EQ(did_you_mean("bem", known), "; did you mean \"beam\"?");
  EXPECT_EQ(did_you_mean("thread", known), "; did you mean \"threads\"?");
  EXPECT_EQ(did_you_mean("cachedir", known), "; did you mean \"cache_dir\"?");
}

TEST(DidYouMean, is_silent_where_nothing_is_near) {
  EXPECT_EQ(did_you_mean("elephant", {"device", "beam"}), "");
  EXPECT_EQ(did_you_mean("", {"", "a"}), "");
  EXPECT_EQ(did_you_mean("xy", {}), "");
  const std::string endless(100000, 'a');
  EXPECT_EQ(did_you_mean(endless, {endless + "b"}), "");
}

}  // namespace
}  // namespace tiny
