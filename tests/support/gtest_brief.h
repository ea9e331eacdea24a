// gtest's header without death tests and matchers, which no test uses: every file that reads the
// whole instantiates them anew, for a third of a second.  What is read once for all tests starts
// with this (tests/CMakeLists.txt); each still includes <gtest/gtest.h>.
#pragma once

namespace testing::internal {
class DefaultDeathTestFactory;  // gtest.h names it as a friend
}
#define GOOGLETEST_INCLUDE_GTEST_GTEST_DEATH_TEST_H_
#define GOOGLETEST_INCLUDE_GTEST_GTEST_MATCHERS_H_
#include <gtest/gtest.h>
