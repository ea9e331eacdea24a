#include "tests/render/random_linear.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/render/naive_linear.h"

namespace tiny {
namespace {

TEST(RandomLinear, TheSameSeedGivesTheSameProgram) {
  EXPECT_EQ(to_string(random_linear(5)), to_string(random_linear(5)));
  EXPECT_NE(to_string(random_linear(5)), to_string(random_linear(6)));
}

TEST(RandomLinear, EveryLinearOpOccurs) {
  std::set<Op> seen;
  for (uint64_t seed = 0; seed < 200; ++seed)
    for (const LinearOp& op : random_linear(seed).ops) seen.insert(op.op);
  // Renderers of single threads refuse those of groups; codegen_random_kernels draws them.
  const std::set<Op> of_groups{Op::Shared,     Op::Barrier,   Op::GroupFold, Op::Mma,
                               Op::LoadMatrix, Op::CopyAsync, Op::Commit,    Op::WaitCopies,
                               Op::Join,       Op::Part,      Op::Fence,     Op::CommitMmas,
                               Op::WaitMmas};
  for (size_t i = 0; i < kOpCount; ++i)
    if (const Op op = static_cast<Op>(i); legal_in(op, kLinearStage) && !of_groups.contains(op)) {
      EXPECT_TRUE(seen.contains(op)) << info(op).name;
    }
}

TEST(RandomLinear, RunsStayInTheirBuffersAndLeaveTraces) {
  int traces = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const LinearProgram p = random_linear(seed, {.odd_lanes = seed % 2 == 1});
    LinearBuffers before(p, seed), after(p, seed);
    EXPECT_EQ(difference(p, before, after), "");
    naive::run(p, after.args());
    traces += difference(p, before, after) != "";
  }
  EXPECT_GT(traces, 120);
}

TEST(RandomLinear, ATargetLimitsVectorOps) {
  const Target target = avx2_target();
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const LinearProgram p = random_linear(seed, {.target = &target});
    for (const LinearOp& op : p.ops)
      if (op.op == Op::FloorDiv || op.op == Op::TruncMod) {
        EXPECT_EQ(op.dtype.lanes, 1);
      }
  }
}

}  // namespace
}  // namespace tiny
