// The table of settings: what it gives, what it refuses, and its copy in docs/debugging.md.
#include "base/flags.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/error.h"

namespace tiny {
namespace {

std::vector<std::string> warnings;

TEST(Flags, TheEnvironmentSpeaksAfterTheDefaults) {
  setenv("TINY_BEAM", "7", 1);
  setenv("TINY_GRAPH", "yes", 1);
  setenv("TINY_NO_SUCH_THING", "1", 1);
  warnings.clear();
  Flags flags = Flags::from_environment([](const std::string& line) { warnings.push_back(line); });
  unsetenv("TINY_BEAM");
  unsetenv("TINY_GRAPH");
  unsetenv("TINY_NO_SUCH_THING");
  EXPECT_EQ(flags.beam, 7);
  EXPECT_EQ(flags.graph, 0);
  EXPECT_EQ(flags.out_dir, "/tmp");
  std::string all;
  for (const std::string& line : warnings) all += line + "\n";
  EXPECT_NE(all.find("TINY_GRAPH=yes is not an integer"), std::string::npos) << all;
  EXPECT_NE(all.find("unknown environment variable TINY_NO_SUCH_THING"), std::string::npos) << all;
  flags.set_int("beam", 3);
  EXPECT_EQ(flags.beam, 3);
  EXPECT_THROW(flags.set_int("no_such_thing", 1), Error);
  EXPECT_THROW(flags.set_text("beam", "3"), Error);
}

TEST(Flags, TheManualHasEveryOne) {
  const char* folder = std::getenv("GOLDEN_DIR");
  std::ifstream file(folder ? std::string(folder) + "/../../docs/debugging.md"
                            : "docs/debugging.md");
  ASSERT_TRUE(file.is_open());
  const std::string manual{std::istreambuf_iterator<char>(file), {}};
  for (const FlagInfo& flag : kFlags) {
    std::string name = "TINY_";
    for (const char* c = flag.key; *c; ++c)
      name += static_cast<char>(*c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
    const std::string row =
        "| `" + name + "` | `" + flag.default_text + "` | " + flag.meaning + " |";
    EXPECT_NE(manual.find(row), std::string::npos) << "docs/debugging.md lacks: " << row;
  }
}

}  // namespace
}  // namespace tiny
