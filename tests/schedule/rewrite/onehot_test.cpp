// Products with one-hot masks become gathers with the same values.
#include "schedule/rewrite/onehot.h"

#include <gtest/gtest.h>

#include "shape/shape.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"
#include "tests/reference/reference.h"
#include "tests/support/graph_test.h"

namespace tiny {
namespace {

class RewriteOnehot : public testing::GraphTest {
 protected:
  Tensor ints(const Ints& values, const Ints& shape) {
    return from_data(context_, kInt64, shape, values.data(), std::ssize(values) * 8);
  }
  Tensor hot(const Tensor& index, int64_t depth, DType dtype = kFloat32) {
    return one_hot(index, depth, full(context_, dtype, {}, 1), full(context_, dtype, {}, 0));
  }
  static int64_t count(const UOp& root, Op op) {
    int64_t n = 0;
    for (const UOp& u : topological({&root, 1})) n += u.op() == op;
    return n;
  }
  // The rewritten graph reads instead of summing, and has the same values.
  static void expect_gather(const Tensor& t) {
    const UOp out = onehot_to_gather({&t.node(), 1}).roots.front();
    EXPECT_EQ(count(out, Op::Gather), 1) << to_string(out);
    EXPECT_EQ(count(out, Op::ReduceAxis), count(t.node(), Op::ReduceAxis) - 1);
    const reference::Values want = reference::evaluate(t.node());
    const reference::Values got = reference::evaluate(out);
    EXPECT_EQ(got.shape, want.shape);
    EXPECT_EQ(got.real, want.real);
    EXPECT_EQ(got.whole, want.whole);
  }
  static void expect_unchanged(const Tensor& t) {
    EXPECT_TRUE(onehot_to_gather({&t.node(), 1}).roots.front() == t.node());
  }
};

TEST_F(RewriteOnehot, AProductWithAMatrixIsAnEmbedding) {
  expect_gather(matmul(hot(ints({3, 0, 4, 2}, {4}), 5), given({5, 3})));
}

TEST_F(RewriteOnehot, AnIndexOutOfRangeGivesZeros) {
  expect_gather(matmul(hot(ints({3, 9, -7, -1}, {4}), 5), given({5, 3})));
}

TEST_F(RewriteOnehot, AxesOfTheIndexStay) {
  expect_gather(matmul(hot(ints({3, 0, 4, 2, 1, 1}, {2, 3}), 5), given({5, 3})));
}

TEST_F(RewriteOnehot, RowsThatBothShareAreReadAtTheirOwnPlace) {
  const Tensor mask = hot(ints({3, 0, 4, 2}, {4}), 5);
  expect_gather(sum(mul(mask, given({4, 5})), {1}));
  expect_gather(sum(mul(given({4, 5}), mask), {-1}, true));
}

TEST_F(RewriteOnehot, WhatElseIsSummedIsSummed) {
  const Tensor mask = hot(ints({3, 0, 4, 2}, {4}), 5);
  expect_gather(reshape(sum(mul(mask, given({4, 5})), {1}), {2, 2}));
  const Tensor all = sum(mul(mask, given({4, 5})), {0, 1});
  const UOp out = onehot_to_gather({&all.node(), 1}).roots.front();
  EXPECT_EQ(count(out, Op::Gather), 1);
  EXPECT_EQ(reference::evaluate(out).real, reference::evaluate(all.node()).real);
}

TEST_F(RewriteOnehot, AMaskThatChoosesIsAReadToo) {
  const Tensor iota = arange(context_, kInt64, 5);
  const Tensor index = ints({3, 0, 7}, {3, 1});
  expect_gather(
      sum(where(equal(iota, index), given({3, 5}), full(context_, kFloat32, {}, 0)), {1}));
}

TEST_F(RewriteOnehot, AnIotaMayStartElsewhere) {
  const Tensor iota = add(arange(context_, kInt64, 5), Tensor::weak_int(context_, 2));
  const Tensor index = ints({3, 1, 6}, {3, 1});
  expect_gather(sum(mul(cast(equal(index, iota), kFloat32), given({5})), {1}));
}

TEST_F(RewriteOnehot, IntegersAndCastsMatch) {
  const Tensor mask = cast(hot(ints({1, 2}, {2}), 3, kInt32), kInt64);
  expect_gather(sum(mul(mask, ints({5, 6, 7, 8, 9, 10}, {2, 3})), {1}));
}

TEST_F(RewriteOnehot, AnIndexOf32BitsHasItsOwnRange) {
  const Tensor iota = arange(context_, kInt32, 5);
  const Tensor index = cast(ints({3, INT32_MIN, INT32_MAX, 0}, {4, 1}), kInt32);
  expect_gather(
      sum(where(equal(iota, index), given({4, 5}), full(context_, kFloat32, {}, 0)), {1}));
}

TEST_F(RewriteOnehot, OtherSumsStay) {
  const Tensor iota = arange(context_, kInt64, 5);
  const Tensor a = given({5, 5});
  // The index moves with the axis; the mask is not 1; the axis is not the counted one.
  expect_unchanged(sum(mul(cast(equal(iota, flip(iota, {0})), kFloat32), a), {1}));
  expect_unchanged(
      sum(mul(where(equal(iota, number_int(iota, 3)), number(a, 2), number(a, 0)), a), {1}));
  expect_unchanged(sum(mul(cast(equal(iota, number_int(iota, 3)), kFloat32), a), {0}));
  expect_unchanged(max(mul(cast(equal(iota, number_int(iota, 3)), kFloat32), a), {1}));
  expect_unchanged(matmul(a, a));
}

}  // namespace
}  // namespace tiny
