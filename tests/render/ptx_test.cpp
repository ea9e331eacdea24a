#include "render/ptx/ptx.h"

#include <gtest/gtest.h>

#include "tests/render/random_linear.h"
#include "tests/support/assembler.h"
#include "tests/support/failure.h"

namespace tiny {
namespace {

// Of each generation, and those that have instructions of their own.
constexpr const char* kTargets[] = {"sm_75",  "sm_80",   "sm_86",  "sm_89",
                                    "sm_90a", "sm_100a", "sm_120a"};

// Bfloat16's dot products are in; Scale is for targets that have it.
RandomLinearOptions random_options(uint64_t seed) {
  RandomLinearOptions options;
  options.steps = 40;
  options.scale = false;
  options.odd_lanes = seed % 3 == 1;
  if (seed % 3 == 2) options.lanes_max = 1;
  return options;
}

std::vector<LinearProgram> random_programs(uint64_t first, size_t count) {
  std::vector<LinearProgram> out;
  for (uint64_t seed = first; seed < first + count; ++seed)
    out.push_back(random_linear(seed, random_options(seed)));
  return out;
}

class Ptx : public ::testing::TestWithParam<const char*> {};

TEST_P(Ptx, RandomProgramsAssemble) {
  const std::string assembler = testing::ptx_assembler();
  if (assembler.empty()) GTEST_SKIP() << testing::kNoAssembler;
  const std::vector<LinearProgram> programs = random_programs(1, 60);
  const std::string text = render_ptx_unit(programs, ptx_target(std::string(GetParam())))[0].text;
  const testing::Assembled got = testing::assemble(assembler, text, GetParam(), 1);
  EXPECT_EQ(got.status, 0) << got.log.substr(0, 4000);
}

INSTANTIATE_TEST_SUITE_P(Targets, Ptx, ::testing::ValuesIn(kTargets));

}  // namespace
}  // namespace tiny
