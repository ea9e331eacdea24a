// Long reductions of few elements are cut into pieces with the same values.
#include "schedule/rewrite/split_reductions.h"

#include <gtest/gtest.h>

#include "cost/group_machines.h"
#include "ir/fold.h"
#include "schedule/schedule.h"
#include "shape/shape.h"
#include "tensor/activation.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/matmul.h"
#include "tensor/reduce.h"
#include "tests/reference/reference.h"
#include "tests/support/graph_test.h"

namespace tiny {
namespace {

Machine with_cores(int32_t cores) {
  Machine target = avx512_machine();
  target.cores = cores;
  target.launch_seconds = 1e-7;  // so that short ones are worth it
  return target;
}

int64_t count(const UOp& root, Op op) {
  int64_t n = 0;
  for (const UOp& u : topological({&root, 1})) n += u.op() == op;
  return n;
}

class SplitReductionsTest : public testing::GraphTest {
 protected:
  Tensor number(double n) { return full(context_, kFloat32, {}, n); }

  static UOp split(const Tensor& t, int32_t cores = 4) {
    const UOp node = t.node();
    return split_reductions({&node, 1}, with_cores(cores)).roots.front();
  }
  static void expect_split(const Tensor& t) {
    const UOp out = split(t);
    EXPECT_EQ(count(out, Op::ReduceAxis), count(t.node(), Op::ReduceAxis) + 1) << to_string(out);
    const reference::Values want = reference::evaluate(t.node());
    const reference::Values got = reference::evaluate(out);
    EXPECT_EQ(got.shape, want.shape);
    EXPECT_EQ(got.real, want.real);
    EXPECT_EQ(got.whole, want.whole);
  }
  static void expect_given(const Tensor& t, int32_t cores = 4) {
    EXPECT_TRUE(split(t, cores) == t.node()) << to_string(split(t, cores));
  }
};

constexpr int64_t kLong = 1 << 17;

TEST_F(SplitReductionsTest, SumsOfAllElementsAreCut) {
  expect_split(sum(given({kLong}), {0}, false));
  expect_split(sum(given({64, kLong / 64}), {0, 1}, false));
  expect_split(sum(given({3, kLong}), {0, 1}, true));
}

TEST_F(SplitReductionsTest, SoIsEveryOperation) {
  const Tensor x = given({kLong});
  expect_split(max(x, {0}, false));
  expect_split(min(x, {0}, false));
  expect_split(prod(where(less(x, number(0)), number(-1), number(1)), {0}, false));
  expect_split(any(equal(x, number(2.5)), {0}, false));
  expect_split(all(equal(x, x), {0}, false));
}

// All values are on one side of zero, which padding would put among them.
TEST_F(SplitReductionsTest, LengthsWithoutDivisorsArePadded) {
  constexpr int64_t kPrime = 131101;
  const Tensor x = given({kPrime});
  expect_split(sum(x, {0}, false));
  expect_split(sum(exp(sub(x, x)), {0}, false));
  expect_split(max(sub(x, number(100)), {0}, false));
  expect_split(min(add(x, number(100)), {0}, false));
  expect_split(prod(where(less(x, number(0)), number(-1), number(1)), {0}, false));
  expect_split(all(less(x, number(100)), {0}, false));
  expect_split(any(less(x, number(-2)), {0}, false));
}

TEST_F(SplitReductionsTest, SumsOverTheFirstAxisAreCut) {
  expect_split(sum(given({kLong / 4, 4}), {0}, true));
  expect_split(sum(given({4, kLong / 16, 4}), {0, 1}, false));
}

TEST_F(SplitReductionsTest, SkinnyProductsAreCut) {
  expect_split(matmul(given({4, 1 << 14}), given({1 << 14, 4})));
  expect_split(matmul(given({1, 1 << 14}), given({1 << 14, 16})));
}

TEST_F(SplitReductionsTest, WhatCoresCanShareIsLeftWhole) {
  expect_given(sum(given({1024, 1024}), {1}, false));
  expect_given(sum(given({1024, 1024}), {0}, false));
  expect_given(matmul(given({256, 1024}), given({1024, 256})));
  expect_given(softmax(given({64, 4096}), 1));
}

TEST_F(SplitReductionsTest, ShortOnesAreLeftWhole) {
  expect_given(sum(given({4096}), {0}, false));
  expect_given(max(given({64, 100}), {1}, false));
}

TEST_F(SplitReductionsTest, OneCoreChangesNothing) {
  expect_given(sum(given({kLong}), {0}, false), 1);
  expect_given(matmul(given({4, 1 << 14}), given({1 << 14, 4})), 1);
}

// Groups share tiles of a product, by rows and by columns; pieces are no more than what fills the
// processors.
TEST_F(SplitReductionsTest, GroupsShareTilesOfProducts) {
  Machine target(generic_target(16));
  imitate(*find_group_machine("h100"), target);
  const auto split_on_groups = [&](const Tensor& t) {
    const UOp node = t.node();
    return split_reductions({&node, 1}, target).roots.front();
  };
  // The second product of an attention, whose factor is computed: 64 heads for 132 processors.
  const Tensor weights = exp(full(context_, kFloat32, {64, 4096, 4096}, 0));
  const Tensor values = full(context_, kFloat32, {64, 4096, 128}, 0);
  const Tensor heads = matmul(weights, values);
  EXPECT_TRUE(split_on_groups(heads) == heads.node());
  const Tensor large =
      matmul(full(context_, kFloat32, {1024, 8192}, 0), full(context_, kFloat32, {8192, 512}, 0));
  EXPECT_TRUE(split_on_groups(large) == large.node());
  // Of four tiles, 32 steps a piece at the least: pieces as many as are wanted, not 1056.
  const Tensor few = matmul(full(context_, kFloat32, {64, 1 << 18}, 0),
                            full(context_, kFloat32, {1 << 18, 64}, 0));
  const UOp pieces = split_on_groups(few);
  ASSERT_EQ(count(pieces, Op::ReduceAxis), 2);
  int64_t elements = 0;
  for (const UOp& u : topological({&pieces, 1}))
    if (u.op() == Op::Contiguous) elements = product(shape_of(u)).value();
  EXPECT_LE(elements, 64 * 64 * 2 * 8 * 132 / 4);
}

TEST_F(SplitReductionsTest, TheOriginOfAResultIsWhatItWasMadeFrom) {
  const Tensor t = relu(sum(given({kLong}), {0}, true));
  const UOp node = t.node();
  const ChangedGraph out = split_reductions({&node, 1}, with_cores(2));
  ASSERT_FALSE(out.roots.front() == node);
  EXPECT_TRUE(out.origin_of(out.roots.front()) == node);
}

TEST(IdentityBits, ChangeNothing) {
  Graph graph;
  for (const DType dtype : {kInt32, kFloat32, kBool, kUInt8})
    for (const Op op : {Op::Add, Op::Mul, Op::Max, Op::Min, Op::And, Op::Or}) {
      if ((op == Op::And || op == Op::Or) && dtype.is_float()) continue;
      const UOp one = graph.constant_int(dtype, 1);
      const std::vector<UOp> src{graph.constant_bits(dtype, identity_bits(op, dtype)), one};
      const auto value = fold(op, src);
      ASSERT_TRUE(value.has_value());
      EXPECT_TRUE(*value == one) << to_string(dtype);
    }
}

}  // namespace
}  // namespace tiny
