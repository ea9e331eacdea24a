// Texts that must stay as they are recorded in tests/golden/*.txt.
//
// After a change that is meant, write them anew and read the difference:
//   UPDATE_GOLDEN=1 ctest --test-dir build/release -R golden; git diff tests/golden
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

namespace tiny::testing {

// `text` is what tests/golden/NAME.txt holds.
inline void expect_golden(const std::string& name, const std::string& text) {
  const char* folder = std::getenv("GOLDEN_DIR");
  const std::string path = std::string(folder ? folder : "tests/golden") + "/" + name + ".txt";
  if (std::getenv("UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path) << text;
    return;
  }
  std::ifstream file(path);
  ASSERT_TRUE(file.is_open()) << path << " is missing; tests/golden/golden.h says how it is made";
  const std::string recorded{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(text, recorded) << path << "; tests/golden/golden.h says how it is made anew";
}

}  // namespace tiny::testing
