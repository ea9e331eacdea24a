// Reductions of what is one value along their axes walk nothing.
#include "schedule/rewrite/uniform_reductions.h"

#include <gtest/gtest.h>

#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"
#include "tests/reference/reference.h"
#include "tests/support/graph_test.h"

namespace tiny {
namespace {

class UniformReductions : public testing::GraphTest {
 protected:
  // How many elements the reductions that are left walk; values are the oracle's.
  int64_t walked(const Tensor& t) {
    const UOp out = fold_uniform_reductions({&t.node(), 1}).roots.front();
    EXPECT_EQ(out.dtype(), t.dtype());
    EXPECT_EQ(shape_of(out), shape_of(t.node()));
    EXPECT_EQ(reference::evaluate(out).real, reference::evaluate(t.node()).real);
    int64_t count = 0;
    for (const UOp& u : topological({&out, 1}))
      if (u.op() == Op::ReduceAxis) count += product(shape_of(u.src(0))).value();
    return count;
  }
};

TEST_F(UniformReductions, OfRepeatedValues) {
  const Tensor x = expand(reshape(given({3}), {3, 1}), {3, 8});
  for (const Op op : {Op::Add, Op::Mul, Op::Max, Op::Min}) {
    EXPECT_EQ(walked(reduce_as_is(x, op, {1}, false)), 0);
    EXPECT_EQ(walked(reduce_as_is(x, op, {0, 1}, false)), 3);
    EXPECT_EQ(walked(reduce_as_is(x, op, {0}, true)), 24);
    EXPECT_EQ(walked(reduce_as_is(cast(x, kInt8), op, {1}, false)), 0);
  }
  EXPECT_EQ(walked(sum(exp(x) * x, {1}, true)), 0);
  EXPECT_EQ(walked(any(x, {1})), 0);
  EXPECT_EQ(walked(all(x, {1})), 0);
}

TEST_F(UniformReductions, AreLeftWhereElementsDiffer) {
  const Tensor x = expand(reshape(given({3}), {3, 1}), {3, 4});
  EXPECT_GT(walked(sum(pad(x, Shape{0, 1}, Shape{0, 1}), {1})), 0);
  EXPECT_GT(walked(sum(x * given({3, 4}), {1})), 0);
  EXPECT_GT(walked(sum(reshape(x, {4, 3}), {1})), 0);
  EXPECT_EQ(walked(sum(full(context_, kFloat32, {3, 0}, 1), {1})), 0);  // of nothing
}

// Sums of halves that these cannot count.
TEST_F(UniformReductions, OfNarrowFloats) {
  const Tensor x = reduce_as_is(full(context_, kFloat16, {1 << 17}, 0.25), Op::Add, {0}, false);
  EXPECT_EQ(walked(x), 0);
  EXPECT_EQ(walked(reduce_as_is(full(context_, kFloat16, {1 << 17}, 0), Op::Add, {0}, false)), 0);
}

// More elements than anything could walk.
TEST_F(UniformReductions, OfAnyNumber) {
  const Tensor ones = full(context_, kFloat32, {int64_t{1} << 40, 1 << 20}, 1);
  EXPECT_EQ(testing::floats_of(sum(ones, {0, 1})), testing::Floats{0x1p60F});
  EXPECT_EQ(testing::floats_of(mean(ones, {0, 1})), testing::Floats{1});
  EXPECT_EQ(testing::floats_of(max(ones, {0, 1})), testing::Floats{1});
  EXPECT_EQ(testing::floats_of(prod(ones, {0, 1})), testing::Floats{1});
}

}  // namespace
}  // namespace tiny
