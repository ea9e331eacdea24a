#include "base/read_text.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

namespace tiny {
namespace {

TEST(ReadText, GivesTheBeginningOfAFileOrNothing) {
  const std::string path = ::testing::TempDir() + "tiny_read_text_test";
  std::ofstream(path) << "0123456789";
  EXPECT_EQ(read_text(path), "0123456789");
  EXPECT_EQ(read_text(path, 4), "0123");
  std::filesystem::remove(path);
  EXPECT_EQ(read_text(path), "");
  EXPECT_EQ(read_text(::testing::TempDir()), "");
}

}  // namespace
}  // namespace tiny
