#include "render/c/c.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <bit>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "runtime/cdev/cdev.h"
#include "runtime/host.h"
#include "tests/render/naive_linear.h"
#include "tests/render/random_linear.h"

namespace tiny {
namespace {

// Compiles all the programs at once and compares each with the naive evaluator.
void expect_same(const std::vector<LinearProgram>& programs, uint64_t first_seed,
                 CDeviceOptions options) {
  const auto device = make_c_device(std::move(options));
  std::vector<Code> codes;
  for (const LinearProgram& p : programs)
    codes.push_back({CodeKind::C, p.name, p.name, {}, "", p.scratch_bytes});
  codes[0].text = render_c_unit(programs);
  const std::vector<Ref<Executable>> executables = device->load(codes);
  for (size_t i = 0; i < programs.size(); ++i) {
    LinearBuffers expected(programs[i], first_seed + i), got(programs[i], first_seed + i);
    naive::run(programs[i], expected.args());
    static_cast<const HostExecutable&>(*executables[i]).run(got.args());
    ASSERT_EQ(difference(programs[i], expected, got), "") << to_string(programs[i]);
  }
}

std::vector<LinearProgram> programs(uint64_t first_seed, size_t count,
                                    const RandomLinearOptions& options) {
  std::vector<LinearProgram> out;
  for (size_t i = 0; i < count; ++i) out.push_back(random_linear(first_seed + i, options));
  return out;
}

TEST(RenderC, RandomProgramsGiveTheBitsOfTheNaiveEvaluator) {
  expect_same(programs(1, 25, {.steps = 50}), 1, {});
  expect_same(programs(1000, 20, {.steps = 50, .lanes_max = 1}), 1000, {});
}

TEST(RenderC, SoDoesClangAndNoOptimisationAndNoVectorInstructions) {
  expect_same(programs(2000, 12, {.steps = 50}), 2000, {.compiler = "clang-19", .flags = {}});
  expect_same(programs(3000, 12, {.steps = 50}), 3000, {.flags = {"-O0", "-march=x86-64"}});
}

TEST(RenderC, SoDoesCWithoutVectors) {
  expect_same(programs(5000, 12, {.steps = 50}), 5000, {.flags = {"-DTINY_SCALAR", "-std=c11"}});
  expect_same(programs(6000, 8, {.steps = 50, .odd_lanes = true}), 6000,
              {.compiler = "clang-19", .flags = {"-DTINY_SCALAR"}});
}

TEST(RenderC, NoCompilerWarns) {
  const std::string file = testing::TempDir() + "/tiny_warns_" + std::to_string(getpid()) + ".c";
  const std::string text = render_c_unit(programs(7000, 12, {.steps = 50}));
  std::ofstream(file) << text;
  for (const char* compiler : {"gcc", "clang-19"})
    for (const char* form : {"-march=native", "-DTINY_SCALAR", "-march=x86-64"}) {
#if !defined(__x86_64__)
      if (std::string(form).starts_with("-march")) continue;
#endif
      const std::string command = std::string(compiler) + " -std=c11 -Wall -Wextra -Wpedantic " +
                                  "-Werror -fsyntax-only " + form + " " + file;
      EXPECT_EQ(std::system(command.c_str()), 0) << command;
    }
  std::remove(file.c_str());
}

TEST(RenderC, LaneCountsNeedNotBePowersOfTwo) {
  expect_same(programs(4000, 10, {.steps = 40, .lanes_max = 24, .odd_lanes = true}), 4000, {});
}

// gcc 12 contracts C's -fma(a, b, c) to an instruction that gives the other zero.
TEST(RenderC, TheNegatedFmaKeepsTheSignOfZero) {
  LinearProgram p;
  p.name = "negated";
  p.params = {{kFloat32, true, true}};
  const LinearId base = p.add(Op::Param, kAddress, {}, 0), at = p.add(Op::Const, kInt64, {}, 0);
  const LinearId x = p.add(Op::Load, kFloat32, {base, at});
  const LinearId y = p.add(Op::Neg, kFloat32, {p.add(Op::Fma, kFloat32, {x, x, x})});
  p.add(Op::Store, kVoid, {base, at, y});
  const Code rendered = render_c(p);
  const Code code{CodeKind::C, rendered.name, rendered.entry, {}, rendered.text, 0};
  const auto device = make_c_device();
  const auto executables = device->load({&code, 1});
  float value = -1;
  const Ref<Buffer> buffer = device->wrap(&value, sizeof value);
  const Argument argument{buffer.get(), 0};
  device->launch(nullptr, {executables[0].get(), {&argument, 1}, {}, 0, 1}, StopSignal());
  EXPECT_EQ(std::bit_cast<uint32_t>(value), 0x80000000u);
}

TEST(RenderC, TheTextNeedsHeadersOfTheCompilerAlone) {
  for (uint64_t seed = 0; seed < 20; ++seed)
    EXPECT_EQ(render_c(random_linear(seed)).text.find("#include \""), std::string::npos);
}

TEST(RenderC, ASumReadsLikeC) {
  LinearProgram p;
  p.name = "sum";
  p.params = {{kFloat32, true, false}, {kFloat32, false, true}};
  const DType v = kFloat32.with_lanes(4);
  const LinearId in = p.add(Op::Param, kAddress, {}, 0), out = p.add(Op::Param, kAddress, {}, 1);
  const LinearId zero = p.add(Op::Const, v, {}, 0);
  const LinearId low = p.add(Op::Const, kInt64, {}, 0), high = p.add(Op::Const, kInt64, {}, 64);
  const LinearId acc = p.add(Op::Accumulator, v, {zero});
  const LinearId loop = p.add(Op::Loop, kInt64, {low, high}, 4);
  const LinearId x = p.add(Op::Load, v, {in, loop}, 0, 1);
  p.add(Op::Set, kVoid, {acc, p.add(Op::Add, v, {acc, x})});
  p.add(Op::EndLoop, kVoid, {loop});
  const LinearId sum = p.add(Op::Fold, kFloat32, {acc}, 0, static_cast<int32_t>(Op::Add));
  p.add(Op::Store, kVoid, {out, low, sum});
  verify(p);
  const std::string text = render_c(p).text;
  EXPECT_NE(text.find(R"(/* sum */
void sum(const struct KernelArgs *args) {
  (void)args;
  const address p0 = (address)args->buffers[0];
  const address p1 = (address)args->buffers[1];
  const f32x4 v2 = splat_f32x4(0.0f);
  f32x4 acc5 = v2;
  for (i64 k6 = 0ll; k6 < 64ll; k6 += 4) {
    const f32x4 v7 = load_f32x4(p0 + (address)k6 * 4);
    const f32x4 v8 = add_f32x4(acc5, v7);
    acc5 = v8;
  }
  const f32 v11 = fold_add_f32x4(acc5);
  store_f32(p1, v11);
}
)"),
            std::string::npos)
      << text;
}

TEST(RenderC, NamesThatAreNoIdentifiersOrStandTwiceAreRefused) {
  std::vector<LinearProgram> two(2);
  two[0].name = two[1].name = "same";
  EXPECT_THROW(render_c_unit(two), Error);
  two[0].name = "a b";
  EXPECT_THROW(render_c(two[0]), Error);
}

}  // namespace
}  // namespace tiny
