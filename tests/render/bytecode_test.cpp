#include "render/bytecode.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/bytecode.h"
#include "runtime/interp/interp.h"
#include "tests/render/naive_linear.h"
#include "tests/render/random_linear.h"
#include "tests/support/failure.h"

namespace tiny {
namespace {

BytecodeHeader header_of(const Code& r) {
  BytecodeHeader header;
  std::memcpy(&header, r.bytes.data(), sizeof header);
  return header;
}

// What `run` leaves is what the naive evaluator leaves.
void expect_same(const LinearProgram& p, uint64_t seed) {
  const Code rendered = render_bytecode(p);
  LinearBuffers expected(p, seed);
  naive::run(p, expected.args());
  for (BytecodeIsa isa : {BytecodeIsa::Best, BytecodeIsa::Baseline}) {
    const Ref<Executable> executable = load_bytecode(rendered, isa);
    LinearBuffers got(p, seed, rendered.scratch_bytes);
    run_bytecode(*executable, got.args());
    ASSERT_EQ(difference(p, expected, got), "") << to_string(p);
  }
}

TEST(Bytecode, RandomProgramsGiveTheBitsOfTheNaiveEvaluator) {
  for (uint64_t seed = 0; seed < 800; ++seed) {
    const LinearProgram p = random_linear(seed, {.steps = 40 + static_cast<int>(seed % 80)});
    expect_same(p, seed);
    if (HasFatalFailure()) return;
  }
}

TEST(Bytecode, ScalarAndOddLaneProgramsToo) {
  for (uint64_t seed = 10000; seed < 10200; ++seed) {
    expect_same(random_linear(seed, {.lanes_max = 1}), seed);
    expect_same(random_linear(seed, {.lanes_max = 37, .odd_lanes = true}), seed);
    if (HasFatalFailure()) return;
  }
}

TEST(Bytecode, FramesAreReused) {
  LinearProgram p;
  p.name = "chain";
  p.params = {{kFloat32, true, true}};
  const LinearId base = p.add(Op::Param, kAddress, {}, 0);
  const LinearId zero = p.add(Op::Const, kInt64, {}, 0);
  LinearId x = p.add(Op::Load, kFloat32.with_lanes(16), {base, zero}, 0, 1);
  for (int i = 0; i < 1000; ++i) x = p.add(Op::Add, kFloat32.with_lanes(16), {x, x});
  p.add(Op::Store, kVoid, {base, zero, x}, 0, 1);
  verify(p);
  EXPECT_LE(header_of(render_bytecode(p)).frame_bytes, 512u);
}

TEST(Bytecode, EqualConstantsShareASlot) {
  LinearProgram p;
  p.name = "constants";
  for (int i = 0; i < 100; ++i) p.add(Op::Const, kFloat32.with_lanes(16), {}, i % 2);
  EXPECT_EQ(header_of(render_bytecode(p)).frame_bytes, 128u);
}

TEST(Bytecode, ArithmeticOnHalvesIsRefused) {
  LinearProgram p;
  p.name = "half";
  const LinearId x = p.add(Op::Const, kFloat16, {}, 0x3C00);
  p.add(Op::Add, kFloat16, {x, x});
  testing::expect_failure(testing::failure_of([&] { render_bytecode(p); }), Status::Internal);
}

}  // namespace
}  // namespace tiny
