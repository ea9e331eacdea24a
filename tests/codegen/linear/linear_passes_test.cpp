#include "codegen/linear/linear_passes.h"

#include <gtest/gtest.h>

#include "tests/render/naive_linear.h"
#include "tests/render/random_linear.h"

namespace tiny {
namespace {

size_t count(const LinearProgram& p, Op op) {
  size_t n = 0;
  for (const LinearOp& o : p.ops) n += o.op == op;
  return n;
}

// A program over one input and one output, to which ops are added in the test.
struct Sample {
  LinearProgram p;
  LinearId in, out, zero;
  Sample() {
    p.name = "sample";
    p.params = {{kFloat32, true, false}, {kFloat32, false, true}};
    in = p.add(Op::Param, kAddress, {}, 0);
    out = p.add(Op::Param, kAddress, {}, 1);
    zero = p.add(Op::Const, kInt64);
  }
  LinearId load() { return p.add(Op::Load, kFloat32, {in, zero}); }
  void store(LinearId v) { p.add(Op::Store, kVoid, {out, zero, v}); }
  void run() {
    verify(p);
    merge_equal(p);
    remove_dead(p);
    verify(p);
  }
};

TEST(MergeEqual, LoadsAndWhatIsMadeOfThemBecomeOne) {
  Sample s;
  const LinearId a = s.p.add(Op::Neg, kFloat32, {s.load()});
  const LinearId b = s.p.add(Op::Neg, kFloat32, {s.load()});
  s.store(s.p.add(Op::Add, kFloat32, {a, b}));
  s.run();
  EXPECT_EQ(count(s.p, Op::Load), 1u);
  EXPECT_EQ(count(s.p, Op::Neg), 1u);
}

TEST(MergeEqual, LoadsOnTwoSidesOfAStoreStayTwo) {
  Sample s;
  s.store(s.load());
  s.store(s.load());
  s.run();
  EXPECT_EQ(count(s.p, Op::Load), 2u);
}

TEST(MergeEqual, ALoadInALoopIsNotTheOneBeforeIt) {
  Sample s;
  const LinearId before = s.load();
  const LinearId three = s.p.add(Op::Const, kInt64, {}, 3);
  const LinearId loop = s.p.add(Op::Loop, kInt64, {s.zero, three}, 1);
  s.store(s.p.add(Op::Add, kFloat32, {before, s.load()}));
  s.p.add(Op::EndLoop, kVoid, {loop});
  s.run();
  EXPECT_EQ(count(s.p, Op::Load), 2u);
}

TEST(MergeEqual, WhatABlockMadeEndsWithIt) {
  Sample s;
  const LinearId x = s.load();
  const LinearId yes = s.p.add(Op::Const, kBool, {}, 1);
  const LinearId block = s.p.add(Op::If, kVoid, {yes});
  s.store(s.p.add(Op::Neg, kFloat32, {x}));
  s.p.add(Op::EndIf, kVoid, {block});
  s.store(s.p.add(Op::Neg, kFloat32, {x}));
  s.run();
  EXPECT_EQ(count(s.p, Op::Neg), 2u);
}

TEST(MergeEqual, ReadersOfAnAccumulatorStayApart) {
  Sample s;
  const LinearId x = s.load();
  const LinearId acc = s.p.add(Op::Accumulator, kFloat32, {x});
  const LinearId a = s.p.add(Op::Neg, kFloat32, {acc});
  s.p.add(Op::Set, kVoid, {acc, a});
  const LinearId b = s.p.add(Op::Neg, kFloat32, {acc});
  s.store(b);
  s.run();
  EXPECT_EQ(count(s.p, Op::Neg), 2u);
}

TEST(MergeEqual, RandomProgramsKeepTheirMeaning) {
  size_t fewer = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const LinearProgram before = random_linear(seed);
    LinearProgram after = before;
    merge_equal(after);
    remove_dead(after);
    verify(after);
    fewer += after.ops.size() < before.ops.size();
    LinearBuffers want(before, seed), got(before, seed);
    naive::run(before, want.args());
    naive::run(after, got.args());
    ASSERT_EQ(difference(before, want, got), "") << seed;
  }
  EXPECT_GT(fewer, 0u);
}

}  // namespace
}  // namespace tiny
