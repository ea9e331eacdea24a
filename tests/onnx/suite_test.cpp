// The test suites of the onnx wheel.  What is not supported says so; nothing is accepted and wrong.
#include "tests/onnx/suite.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>

#include "base/text.h"

namespace tiny::onnx::testing {
namespace {

namespace fs = std::filesystem;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// The wheel's data holds a float32 transform's rounding errors where the true value is 0.
Tolerance tolerance_of(const std::string& name) {
  Tolerance tolerance;
  if (name.find("dft") != std::string::npos) tolerance.absolute = 1e-6;
  return tolerance;
}

class Suite : public ::testing::TestWithParam<const char*> {};

// SUITE_FILTER chooses cases by a regular expression, SUITE_LOG names a file for a line per case.
TEST_P(Suite, PassesOrSaysUnsupported) {
  const fs::path data = fs::path(variable("ONNX_PACKAGE")) / "backend/test/data" / GetParam();
  if (!fs::exists(data)) GTEST_SKIP() << "the onnx wheel is not there: set TINY_VENV";
  const std::regex filter(variable("SUITE_FILTER"));
  std::ofstream log;
  if (!variable("SUITE_LOG").empty()) log.open(variable("SUITE_LOG"), std::ios::app);
  int counts[4] = {};
  for (const std::string& folder : cases_below(data)) {
    const std::string name = fs::path(folder).filename();
    if (!std::regex_search(name, filter)) continue;
    const CaseResult result = run_case_apart(folder, tolerance_of(name), 60);
    ++counts[static_cast<int>(result.verdict)];
    if (log.is_open())
      log << GetParam() << ' ' << name << ' ' << to_string(result.verdict) << ' ' << result.reason
          << std::endl;
    EXPECT_TRUE(result.verdict == Verdict::Pass || result.verdict == Verdict::Unsupported)
        << name << ": " << result.reason;
  }
  std::printf("%s: %d passed, %d unsupported, %d failed, %d errors\n", GetParam(), counts[0],
              counts[1], counts[2], counts[3]);
}

INSTANTIATE_TEST_SUITE_P(Onnx, Suite,
                         ::testing::Values("node", "simple", "pytorch-converted",
                                           "pytorch-operator"),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name)
                             if (c == '-') c = '_';
                           return name;
                         });

}  // namespace
}  // namespace tiny::onnx::testing
