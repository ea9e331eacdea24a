// Every kernel of onnx's node suite in HIP, through the compiler of AMD's processors, in Metal's
// language, as C++ with a header that stands for Metal's, and in WGSL.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "tests/onnx/suite_kernels.h"
#include "tests/support/environment.h"
#include "tests/support/host_kernels.h"
#include "tests/support/wgsl.h"

namespace tiny {
namespace {

using testing::Dialect;

bool computes_with_float64(const LinearProgram& program) {
  return std::ranges::any_of(
      program.ops, [](const LinearOp& op) { return op.dtype.scalar == ScalarType::Float64; });
}

class DialectKernels : public ::testing::TestWithParam<Dialect> {};

TEST_P(DialectKernels, AreTheLanguage) {
  const bool is_hip = GetParam() == Dialect::Hip;
  std::vector<LinearProgram> kernels = testing::kernels_of_suite();
  if (kernels.empty()) GTEST_SKIP() << testing::kNoOnnxPackage;
  if (!is_hip) std::erase_if(kernels, computes_with_float64);
  EXPECT_GT(kernels.size(), 1000U);
  const testing::TemporaryFolder folder;
  const std::string file = folder / (is_hip ? "unit.hip" : "unit.cpp");
  std::ofstream(file) << testing::text_of(GetParam(), kernels);
  const std::string headers = testing::device_headers();
  const std::string command = cat(
      is_hip ? "clang-19 -x hip -nogpulib -nogpuinc --offload-device-only --offload-arch=gfx942"
             : "clang++-19 -std=c++17",
      " -Wall -Wno-unused -Wno-unknown-pragmas -Wno-unknown-attributes -Werror -fsyntax-only -I ",
      headers, " -I ", headers, "/../../.. ", file);
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
}

// Those that WGSL can say, through the validator of WebGPU.
TEST(WgslKernels, AreTheLanguage) {
  if (testing::kernels_of_suite().empty()) GTEST_SKIP() << testing::kNoOnnxPackage;
  testing::WgslRuns modules;
  for (const LinearProgram& kernel : testing::kernels_of_suite()) modules.add(kernel);
  std::printf("%zu modules\n", modules.size());
  EXPECT_GT(modules.size(), 800U);
  if (!modules.finish()) GTEST_SKIP() << testing::kNoWebGpu;
}

INSTANTIATE_TEST_SUITE_P(Languages, DialectKernels, ::testing::Values(Dialect::Hip, Dialect::Metal),
                         [](const auto& info) {
                           return info.param == Dialect::Hip ? "Hip" : "Metal";
                         });

}  // namespace
}  // namespace tiny
