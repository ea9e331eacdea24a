// Sums of products whose factors depend on a part of the steps have few steps, and the graph has
// the same values.
#include "autograd/factor_sums.h"

#include <gtest/gtest.h>

#include "shape/shape.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"
#include "tests/reference/reference.h"
#include "tests/support/graph_test.h"

namespace tiny {
namespace {

class FactorSums : public testing::GraphTest {
 protected:
  Tensor data(const Ints& shape) {
    int64_t count = 1;
    for (int64_t n : shape) count *= n;
    std::vector<float> values;
    for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>((i * 7 + 3) % 11 - 5));
    return from_data(context_, kFloat32, shape, values.data(), count * 4);
  }

  // The most steps of a sum of products in the graph that is made of it, whose values are the
  // oracle's: small integers, so that the order of additions makes no difference.
  static int64_t most_steps(const Tensor& t) {
    const UOp out = with_factors_summed(t.node());
    const reference::Values want = reference::evaluate(t.node());
    const reference::Values got = reference::evaluate(out);
    EXPECT_EQ(got.shape, want.shape);
    EXPECT_EQ(got.real, want.real);
    int64_t most = 0;
    for (const UOp& u : topological({&out, 1})) {
      if (u.op() != Op::ReduceAxis) continue;
      int64_t steps = 1;
      for (const Dim& d : shape_of(u.src(0))) steps *= d.value();
      most = std::max(most, steps);
    }
    return most;
  }
};

TEST_F(FactorSums, RowsOfAProductAreSummedBeforeIt) {
  // sum over a and c of f[a, c] g[c, j]
  const Tensor f = expand(reshape(data({32, 6}), {32, 6, 1}), {32, 6, 5});
  const Tensor g = expand(reshape(data({6, 5}), {1, 6, 5}), {32, 6, 5});
  EXPECT_EQ(most_steps(sum(f * g, {0, 1}, true)), 32 * 6);
  EXPECT_EQ(most_steps(sum(g * f, {0, 1}, true)), 32 * 6);
}

TEST_F(FactorSums, EachFactorHasASumOfItsOwn) {
  const Tensor f = expand(reshape(data({16, 1, 8}), {16, 1, 8}), {16, 9, 8});
  const Tensor g = expand(reshape(data({1, 9, 8}), {1, 9, 8}), {16, 9, 8});
  EXPECT_EQ(most_steps(sum(f * g, {0, 1, 2}, true)), 16 * 8);
}

// The gradient of a bias sums the rows that a product has too, which other movement leads to.
TEST_F(FactorSums, SumsOfTheSameRowsAreOneNode) {
  const Tensor rows = data({4, 8, 6});
  const auto is_sum = [](const UOp& u) { return u.op() == Op::ReduceAxis; };
  const auto of_rows = [&](const Tensor& t) {
    EXPECT_EQ(most_steps(t), 4 * 8 * 6);
    const UOp out = with_factors_summed(t.node());
    const std::vector<UOp> order = topological({&out, 1});
    return *std::ranges::find_if(order, is_sum);
  };
  const Tensor f = expand(reshape(rows, {4, 8, 6, 1}), {4, 8, 6, 5});
  const Tensor g = expand(reshape(data({6, 5}), {1, 1, 6, 5}), {4, 8, 6, 5});
  const UOp all =
      of_rows(sum(permute(f, {2, 0, 1, 3}) * permute(g, {2, 0, 1, 3}), {0, 1, 2}, true));
  EXPECT_EQ(all, of_rows(sum(f * g, {0, 1, 2}, true)));
  EXPECT_EQ(all, of_rows(sum(rows, {0, 1}, true)));
  EXPECT_EQ(all, of_rows(sum(reshape(permute(reshape(rows, {4, 8, 1, 6}), {3, 0, 2, 1}), {6, 4, 8}),
                             {1, 2}, true)));
  EXPECT_FALSE(all == of_rows(sum(rows, {0, 2}, true)));
}

// Nor what has no elements, nor what is a part of what lies below.
TEST_F(FactorSums, PartsAreSummedAsTheyAre) {
  const Tensor none = permute(data({2, 0, 2, 1}), {3, 1, 0, 2});
  const UOp of_none = make_reduce(reshape(none, {0, 2, 2}).node(), Op::Add, {1, 2});
  EXPECT_EQ(with_factors_summed(of_none), of_none);
  const Tensor square = slice(reshape(data({4, 4}), {4, 1, 4}), {0, 0, 1}, {4, 1, 2});
  most_steps(sum(reshape(permute(square, {2, 1, 0}), {4, 1}), {0}, true));
  const Tensor part = slice(permute(data({3, 4, 2}), {1, 0, 2}), {1, 0, 0}, {3, 3, 2});
  EXPECT_EQ(most_steps(sum(part, {0, 1}, true)), 2 * 3 * 2);
}

TEST_F(FactorSums, AProductStaysWhereItsSumsAreItsOwn) {
  const Tensor f = expand(reshape(data({32, 6}), {32, 6, 1}), {32, 6, 5});
  const Tensor g = expand(reshape(data({6, 5}), {1, 6, 5}), {32, 6, 5});
  EXPECT_EQ(most_steps(sum(f * g, {1}, true)), 32 * 6 * 5);  // a matrix product
  // One sum that saves nothing: a number that all elements are multiplied by.
  EXPECT_EQ(most_steps(sum(data({32, 6}) * expand(data({1, 1}), {32, 6}), {0, 1}, true)), 32 * 6);
}

}  // namespace
}  // namespace tiny
