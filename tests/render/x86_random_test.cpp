// Random linear programs as machine code, against the naive evaluator.
#include "tests/render/machine_runner.h"
#include "tests/render/random_linear.h"

namespace tiny::test {
namespace {

void compare_with_naive(uint64_t seeds, RandomLinearOptions options) {
  for (const Target& target : targets_here()) {
    options.lanes_max =
        static_cast<int>(std::min<int64_t>(options.lanes_max, target.vector_bytes / 8));
    options.scale = target.scales;
    for (uint64_t seed = 0; seed < seeds; ++seed) {
      const LinearProgram p = random_linear(seed, options);
      LinearBuffers want(p, seed), got(p, seed);
      naive::run(p, want.args());
      const LoadedCode code(render_x86(p, target));
      const KernelArgs args = got.args();
      code.function()(&args);
      ASSERT_EQ(tiny::difference(p, want, got), "") << target.name << " seed " << seed << "\n"
                                                    << to_string(p);
    }
  }
}

TEST(X86Random, ScalarProgramsMatch) {
  compare_with_naive(150, {.lanes_max = 1});
}

TEST(X86Random, VectorProgramsMatch) {
  compare_with_naive(300, {.lanes_max = 8});
}

TEST(X86Random, LongProgramsThatSpillMatch) {
  compare_with_naive(60, {.steps = 600, .lanes_max = 8});
}

TEST(X86Random, StraightLinesMatch) {
  compare_with_naive(80, {.steps = 200, .lanes_max = 8, .control = false});
}

}  // namespace
}  // namespace tiny::test
