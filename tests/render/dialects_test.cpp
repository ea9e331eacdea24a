// HIP and Metal: the text is compiled for the host and gives the naive evaluator's bits; HIP is
// also compiled for AMD's processors.
#include <gtest/gtest.h>

#include "render/bytecode.h"
#include "render/wgsl/wgsl.h"
#include "runtime/interp/interp.h"
#include "tests/render/group_programs.h"
#include "tests/render/naive_linear.h"
#include "tests/render/random_linear.h"
#include "tests/support/environment.h"
#include "tests/support/host_kernels.h"
#include "tests/support/wgsl.h"

namespace tiny {
namespace {

using testing::Dialect;
using testing::HostKernels;

std::vector<LinearProgram> programs(Dialect dialect, uint64_t seed, size_t count,
                                    RandomLinearOptions options) {
  options.clears_scratch = true;
  options.dots = 0;  // no device of theirs has them
  options.float64 = dialect != Dialect::Metal;
  std::vector<LinearProgram> made;
  for (size_t i = 0; i < count; ++i) made.push_back(random_linear(seed + i, options));
  return made;
}

class RenderDialects : public ::testing::TestWithParam<Dialect> {
 protected:
  static void expect_same(uint64_t seed, size_t count, const RandomLinearOptions& options) {
    const std::vector<LinearProgram> made = programs(GetParam(), seed, count, options);
    const HostKernels kernels(GetParam(), made);
    for (size_t i = 0; i < count; ++i) {
      LinearBuffers expected(made[i], seed + i), got(made[i], seed + i);
      KernelArgs want = one_piece(expected), args = one_piece(got);
      naive::run(made[i], want);
      const auto status = kernels.run(i, args.buffers, args.variables, args.begin, args.end);
      if (status.check != 0) *args.status = check_status(status.check - 1, status.position);
      ASSERT_EQ(difference(made[i], expected, got), "") << "seed " << seed + i << "\n"
                                                        << to_string(made[i]);
    }
  }
  static KernelArgs one_piece(LinearBuffers& buffers) {
    KernelArgs args = buffers.args();
    args.end = args.begin + 1;
    args.worker = 0;
    return args;
  }
};

// PROGRAMS and PROGRAM_SEED look further, or at one.
TEST_P(RenderDialects, RandomProgramsGiveTheBitsOfTheNaiveEvaluator) {
  const auto count = static_cast<size_t>(testing::number_from("PROGRAMS", 5));
  const auto seed = static_cast<uint64_t>(testing::number_from("PROGRAM_SEED", 1));
  expect_same(seed, count, {.steps = 50, .lanes_max = 1});
  expect_same(seed + 1000, count, {.steps = 50, .lanes_max = 4});
  expect_same(seed + 2000, count, {.steps = 40, .odd_lanes = true});
}

// A group turns its values round, through what it shares.
TEST_P(RenderDialects, ThreadsMeet) {
  constexpr int64_t kGroups = 3;
  const LinearProgram p = testing::reversal();
  std::vector<int32_t> values(testing::kReversalThreads * kGroups), got(values.size());
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int32_t>(i);
  void* const buffers[] = {values.data(), got.data()};
  HostKernels(GetParam(), {&p, 1}).run(0, buffers, nullptr, 0, kGroups);
  EXPECT_TRUE(testing::is_reversed(got));
}

// The axes of a group one after the other, halves combined, as the interpreter does.
TEST_P(RenderDialects, FoldsAreInTheInterpretersOrder) {
  for (const int64_t axes : {1, 5, 7}) {
    const LinearProgram p = testing::fold(axes);
    std::vector<float> values = testing::fold_values();
    std::vector<float> want(values.size()), got(values.size());
    void* const interpreted[] = {values.data(), want.data()};
    const Code code = render_bytecode(p);
    std::vector<std::byte> scratch(static_cast<size_t>(code.scratch_bytes) + 64);
    void* aligned = scratch.data();
    size_t room = scratch.size();
    std::align(64, static_cast<size_t>(code.scratch_bytes), aligned, room);
    int64_t status = 0;
    run_bytecode(*load_bytecode(code),
                 {interpreted, nullptr, static_cast<std::byte*>(aligned), 0, 1, 0, &status});
    void* const buffers[] = {values.data(), got.data()};
    HostKernels(GetParam(), {&p, 1}).run(0, buffers, nullptr, 0, 1);
    EXPECT_EQ(got, want) << "axes " << axes;
  }
}

INSTANTIATE_TEST_SUITE_P(Languages, RenderDialects, ::testing::Values(Dialect::Hip, Dialect::Metal),
                         [](const auto& info) {
                           return info.param == Dialect::Hip ? "Hip" : "Metal";
                         });

// As assembly, so that all that the compiler knows of the processor is asked.
TEST(HipText, ClangCompilesItForAmdsProcessors) {
  const testing::TemporaryFolder folder;
  const std::string file = folder / "unit.hip";
  std::ofstream(file) << render_hip(programs(Dialect::Hip, 7000, 4, {.steps = 50}));
  for (const char* processor : {"gfx90a", "gfx942", "gfx1100"}) {
    const std::string command =
        cat("clang-19 -x hip -nogpulib -nogpuinc --offload-device-only --offload-arch=", processor,
            " -Wall -Wno-unused -Werror -O1 -S -I ", testing::device_headers(), " -o ", file, ".s ",
            file);
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
  }
}

// On a device of WebGPU, where there is one.  The program of seed 3 compares a NaN with a number.
TEST(Wgsl, RandomProgramsGiveTheBitsOfTheNaiveEvaluator) {
  const auto count = static_cast<size_t>(testing::number_from("PROGRAMS", 8));
  const auto seed = static_cast<uint64_t>(testing::number_from("PROGRAM_SEED", 3));
  RandomLinearOptions options{.steps = 40, .lanes_max = 8, .odd_lanes = true};
  options.dots = 0;
  // Large memory of a thread is what a processor takes minutes to compile as one of WebGPU.
  options.scratch = false;
  options.float64 = options.int64 = options.scale = false;
  testing::WgslRuns runs;
  std::deque<LinearBuffers> expected;
  std::deque<std::vector<testing::WgslRuns::Bytes>> got;
  std::vector<LinearProgram> made;
  for (size_t i = 0; i < count; ++i) {
    const LinearProgram& p = made.emplace_back(random_linear(seed + i, options));
    ASSERT_TRUE(runs.add(p)) << to_string(p);
    KernelArgs args = expected.emplace_back(p, seed + i).args();
    args.end = args.begin + 1;
    args.worker = 0;
    std::vector<testing::WgslRuns::Bytes>& buffers = got.emplace_back();
    for (size_t b = 0; b < p.params.size(); ++b) {
      const LinearParam& param = p.params[b];
      const int64_t bytes =
          (param.written ? kRandomOutputs : kRandomInputs) * param.element.bytes();
      const auto* first = static_cast<const std::byte*>(args.buffers[b]);
      buffers.emplace_back(first, first + bytes);
    }
    buffers.emplace_back(4 * sizeof(int32_t));
    runs.run_it(p, buffers, args.variables, args.begin, args.end);
    naive::run(p, args);
  }
  if (!runs.finish()) GTEST_SKIP() << testing::kNoWebGpu;
  for (size_t i = 0; i < count; ++i) {
    LinearBuffers after(made[i], seed + i);
    const KernelArgs args = after.args();
    for (size_t b = 0; b < made[i].params.size(); ++b)
      std::memcpy(args.buffers[b], got[i][b].data(), got[i][b].size());
    HostKernels::Status status;
    std::memcpy(&status, got[i].back().data(), sizeof status);
    if (status.check != 0) *args.status = check_status(status.check - 1, status.position);
    EXPECT_EQ(difference(made[i], expected[i], after), "") << "seed " << seed + i;
  }
}

LinearProgram copied(DType dtype, size_t inputs = 1) {
  LinearProgram p;
  p.name = "copy";
  const LinearId zero = p.add(Op::Const, kInt64, {}, 0);
  for (size_t i = 0; i < inputs; ++i) p.params.push_back({dtype, true, false});
  p.params.push_back({dtype, false, true});
  const LinearId in = p.add(Op::Param, kAddress, {}, 0);
  const LinearId out = p.add(Op::Param, kAddress, {}, static_cast<int64_t>(inputs));
  p.add(Op::Store, kVoid, {out, zero, p.add(Op::Load, dtype, {in, zero})});
  verify(p);
  return p;
}

std::string refusal(std::string (*render)(const LinearProgram&), const LinearProgram& program) {
  try {
    render(program);
  } catch (const Error& e) {
    EXPECT_EQ(e.status(), Status::Unsupported);
    return e.message();
  }
  return "";
}

TEST(DialectText, WhatALanguageHasNotIsSaid) {
  const auto metal = [](const LinearProgram& p) { return render_metal({&p, 1}); };
  EXPECT_EQ(refusal(metal, copied(kFloat64)),
            "kernel copy computes with float64, which Metal has not");
  EXPECT_EQ(refusal(metal, copied(kInt64)), "");
  EXPECT_EQ(refusal(metal, copied(kFloat32, 29)),
            "kernel copy has 30 buffers: Metal has at most 29 beside its numbers and the status");
  EXPECT_EQ(refusal(render_wgsl, copied(kFloat64)),
            "kernel copy computes with float64, which WGSL has not");
  EXPECT_EQ(refusal(render_wgsl, copied(kInt64)),
            "kernel copy computes with int64 that 32 bits may not hold, which WGSL has not");
  EXPECT_EQ(refusal(render_wgsl, copied(kUInt64)),
            "kernel copy computes with uint64, which WGSL has not");
  EXPECT_EQ(refusal(render_wgsl, copied(kBFloat16)), "");
}

}  // namespace
}  // namespace tiny
