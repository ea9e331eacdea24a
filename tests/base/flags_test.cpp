// The table of settings: what it gives, what it refuses, and its copy in docs/debugging.md.
#include "base/flags.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
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

std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& e) {
    EXPECT_EQ(e.status(), Status::InvalidArgument);
    return e.message();
  }
  return "no error";
}

TEST(Flags, NumbersHaveRanges) {
  Flags flags;
  for (const FlagInfo& flag : kFlags) {
    if (!flag.number) continue;
    flags.set_int(flag.key, flag.least);
    flags.set_int(flag.key, flag.most);
    for (const int64_t wrong : {flag.least - 1, INT64_MIN}) {
      const std::string message = message_of([&] { flags.set_int(flag.key, wrong); });
      EXPECT_NE(message.find(flag.key), std::string::npos) << message;
      EXPECT_NE(message.find(std::to_string(wrong)), std::string::npos) << message;
    }
  }
  EXPECT_EQ(message_of([&] { flags.set_int("threads", int64_t{1} << 40); }),
            "option \"threads\" wants from 0 to 1024; got 1099511627776");
  EXPECT_EQ(message_of([&] { flags.set_int("memory_limit", -5); }),
            "option \"memory_limit\" wants at least 0; got -5");
  EXPECT_EQ(flags.threads, 1024);
}

TEST(Flags, AVariableOutOfRangeIsIgnored) {
  setenv("TINY_THREADS", "20000", 1);
  warnings.clear();
  const Flags flags =
      Flags::from_environment([](const std::string& line) { warnings.push_back(line); });
  unsetenv("TINY_THREADS");
  EXPECT_EQ(flags.threads, 0);
  EXPECT_EQ(std::count(warnings.begin(), warnings.end(),
                       "TINY_THREADS=20000 is not from 0 to 1024; ignored"),
            1);
}

TEST(Flags, AnUnknownKeyListsAllAndOneOfTheOtherKindSaysSo) {
  Flags flags;
  for (const std::string& message : {message_of([&] { flags.set_int("treads", 1); }),
                                     message_of([&] { flags.set_text("treads", "1"); })})
    for (const FlagInfo& flag : kFlags)
      EXPECT_NE(message.find(flag.key), std::string::npos) << message;
  EXPECT_EQ(message_of([&] { flags.set_text("beam", "3"); }),
            "option \"beam\" is an integer, not a text");
  EXPECT_EQ(message_of([&] { flags.set_int("isa", 3); }),
            "option \"isa\" is a text, not an integer");
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
