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

TEST_F(FactorSums, AProductStaysWhereItsSumsAreItsOwn) {
  const Tensor f = expand(reshape(data({32, 6}), {32, 6, 1}), {32, 6, 5});
  const Tensor g = expand(reshape(data({6, 5}), {1, 6, 5}), {32, 6, 5});
  EXPECT_EQ(most_steps(sum(f * g, {1}, true)), 32 * 6 * 5);  // a matrix product
  // One sum that saves nothing: a number that all elements are multiplied by.
  EXPECT_EQ(most_steps(sum(data({32, 6}) * expand(data({1, 1}), {32, 6}), {0, 1}, true)), 32 * 6);
}

}  // namespace
}  // namespace tiny
