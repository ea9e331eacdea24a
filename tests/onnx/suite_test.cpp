// The test suites of the onnx wheel.  What is not supported says so; nothing is accepted and wrong.
#include "tests/onnx/suite.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>

#include "base/text.h"
#include "tests/support/context.h"
#include "tests/support/environment.h"

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

// What a suite ran on; on device cpu nothing may be interpreted.
class KernelTotals {
 public:
  void add(const CaseResult& result) {
    kernels_ += result.kernels;
    interpreted_ += result.interpreted;
  }
  void tell(const std::string& suite) const {
    std::printf("%s: %lld kernels ran, %lld were compiled to be interpreted\n", suite.c_str(),
                static_cast<long long>(kernels_), static_cast<long long>(interpreted_));
    const std::vector<std::string> devices = tiny::testing::computing_devices();
    const bool has_code = std::find(devices.begin(), devices.end(), "cpu") != devices.end();
    if (has_code && Flags::from_environment(nullptr).device == "cpu") {
      EXPECT_EQ(interpreted_, 0) << suite;
    }
    EXPECT_TRUE(kernels_ > 0 || !variable("SUITE_FILTER").empty());
  }

 private:
  int64_t kernels_ = 0;
  int64_t interpreted_ = 0;
};

class Suite : public ::testing::TestWithParam<const char*> {};

// SUITE_FILTER chooses cases by a regular expression, SUITE_LOG names a file for a line per case.
TEST_P(Suite, PassesOrSaysUnsupported) {
  const fs::path package = tiny::testing::onnx_package();
  if (package.empty()) GTEST_SKIP() << tiny::testing::kNoOnnxPackage;
  const std::regex filter(variable("SUITE_FILTER"));
  std::ofstream log;
  if (!variable("SUITE_LOG").empty()) log.open(variable("SUITE_LOG"), std::ios::app);
  int counts[4] = {};
  KernelTotals totals;
  for (const std::string& folder : cases_below(package / "backend/test/data" / GetParam())) {
    const std::string name = fs::path(folder).filename();
    if (!std::regex_search(name, filter)) continue;
    const CaseResult result = run_case_apart(folder, tolerance_of(name), 60);
    ++counts[static_cast<int>(result.verdict)];
    totals.add(result);
    if (log.is_open())
      log << GetParam() << ' ' << name << ' ' << to_string(result.verdict) << ' ' << result.reason
          << std::endl;
    EXPECT_TRUE(result.verdict == Verdict::Pass || result.verdict == Verdict::Unsupported)
        << name << ": " << result.reason;
  }
  std::printf("%s: %d passed, %d unsupported, %d failed, %d errors\n", GetParam(), counts[0],
              counts[1], counts[2], counts[3]);
  totals.tell(GetParam());
  EXPECT_TRUE(counts[0] > 0 || !variable("SUITE_FILTER").empty());
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

// The same cases with free dimensions: what is compiled for all sizes gives what is wanted for one.
// SUITE_STEP says which share of them runs (1: all).
TEST(SuiteWithFreeSizes, PassesAsWithFixedOnes) {
  const fs::path package = tiny::testing::onnx_package();
  if (package.empty()) GTEST_SKIP() << tiny::testing::kNoOnnxPackage;
  const std::regex filter(variable("SUITE_FILTER"));
  const size_t step = tiny::testing::number_from("SUITE_STEP", 6);
  const std::vector<std::string> folders = cases_below(package / "backend/test/data/node");
  size_t passed = 0;
  KernelTotals totals;
  for (size_t i = 0; i < folders.size(); i += step) {
    const std::string name = fs::path(folders[i]).filename();
    if (!std::regex_search(name, filter)) continue;
    const CaseResult result = run_case_apart(folders[i], tolerance_of(name), 60, Sizes::Free);
    passed += result.verdict == Verdict::Pass;
    totals.add(result);
    EXPECT_TRUE(result.verdict == Verdict::Pass || result.verdict == Verdict::Unsupported)
        << name << ": " << result.reason;
  }
  totals.tell("node with free sizes");
  EXPECT_TRUE(passed > 0 || !variable("SUITE_FILTER").empty());
}

class Light : public ::testing::TestWithParam<const char*> {};

TEST_P(Light, GivesTheRecordedOutput) {
  const fs::path package = tiny::testing::onnx_package();
  if (package.empty()) GTEST_SKIP() << tiny::testing::kNoOnnxPackage;
  const std::vector<std::string> devices = tiny::testing::computing_devices();
  const bool is_fast = std::find(devices.begin(), devices.end(), "cpu") != devices.end();
  const std::string device = variable("TINY_DEVICE");
  if (!is_fast || device == "interp" || device == "far")
    GTEST_SKIP() << "interpreting networks of this size takes minutes";
  const CaseResult result =
      run_light(package / cat("backend/test/data/light/light_", GetParam(), ".onnx"), {});
  EXPECT_EQ(result.verdict, Verdict::Pass) << result.reason;
  KernelTotals totals;
  totals.add(result);
  totals.tell(GetParam());
}

INSTANTIATE_TEST_SUITE_P(Onnx, Light,
                         ::testing::Values("bvlc_alexnet", "densenet121", "inception_v1",
                                           "inception_v2", "resnet50", "shufflenet", "squeezenet",
                                           "vgg19", "zfnet512"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tiny::onnx::testing
