// What follows from sizes, from coordinates, and from the facts of open blocks.
#include "codegen/linearize/prover.h"

#include <gtest/gtest.h>

#include "ir/build.h"
#include "tests/codegen/linearize/nest_kernel.h"

namespace tiny {
namespace {

class Proofs : public ::testing::Test {
 protected:
  Proofs()
      : loop(k.range(10, RangeKind::Loop)),
        row(k.range(4, RangeKind::Upcast)),
        lane(k.range(16, RangeKind::Vec)) {}

  testing::NestKernel k;
  UOp loop, row, lane;
};

TEST_F(Proofs, FollowFromSizes) {
  LoopNest nest(k.kernel);
  IndexForms forms(nest);
  Prover prover(nest, forms);
  EXPECT_EQ(prover.proven(sub(k.graph.integer(9), loop)), 0u);
  EXPECT_FALSE(prover.proven(sub(k.graph.integer(8), loop)));
  EXPECT_FALSE(prover.impossible(sub(k.graph.integer(8), loop)));
  EXPECT_TRUE(prover.impossible(add(loop, -10)));
  EXPECT_TRUE(prover.holds_by_sizes(add(add(loop, row), lane)));
  EXPECT_FALSE(prover.holds_by_sizes(add(loop, -1)));
}

TEST_F(Proofs, ArePerCoordinate) {
  LoopNest nest(k.kernel);
  IndexForms forms(nest);
  Prover prover(nest, forms);
  const UOp e = add(add(loop, row), -2);
  nest.fix(1, 1);
  EXPECT_FALSE(prover.proven(e));
  nest.fix(1, 2);
  EXPECT_EQ(prover.proven(e), 0u);
  nest.release(1);
  EXPECT_FALSE(prover.proven(e));
  const UOp beyond = add(row, -3);
  nest.fix(1, 2);
  EXPECT_TRUE(prover.impossible(beyond));
  nest.fix(1, 3);
  EXPECT_FALSE(prover.impossible(beyond));
  EXPECT_EQ(prover.proven(beyond), 0u);
}

// What relies on a fact may not leave its block, and holds no longer once that is closed.
TEST_F(Proofs, RelyOnTheDepthOfFacts) {
  LoopNest nest(k.kernel);
  IndexForms forms(nest);
  Prover prover(nest, forms);
  const UOp n = k.graph.variable("n", 1, 100);
  const UOp room = sub(n, loop);
  EXPECT_FALSE(prover.proven(room));
  const size_t before = prover.known();
  prover.know(add(sub(n, loop), -16), 1);
  EXPECT_EQ(prover.proven(room), 1u);
  EXPECT_EQ(prover.proven(add(sub(sub(n, loop), lane), -1)), 1u);
  EXPECT_FALSE(prover.proven(add(sub(n, loop), -17)));
  prover.know(add(sub(n, loop), -17), 3);
  EXPECT_EQ(prover.proven(add(sub(n, loop), -17)), 3u);
  prover.forget_beyond(before + 1);
  EXPECT_FALSE(prover.proven(add(sub(n, loop), -17)));
  EXPECT_EQ(prover.proven(room), 1u);
  prover.forget_beyond(before);
  EXPECT_FALSE(prover.proven(room));
}

TEST_F(Proofs, CombineFacts) {
  LoopNest nest(k.kernel);
  IndexForms forms(nest);
  Prover prover(nest, forms);
  const UOp n = k.graph.variable("n", 1, 100);
  const UOp m = k.graph.variable("m", 1, 100);
  prover.know(sub(n, m), 1);
  prover.know(sub(m, loop), 2);
  EXPECT_EQ(prover.proven(sub(n, loop)), 2u);
}

TEST_F(Proofs, KnowWhatFollowsFromTheKernelsFacts) {
  const UOp n = k.graph.variable("n", 1, 1000);
  const UOp fact = add(sub(sub(n, mul(loop, 4)), row), -1);
  k.kernel.facts = {fact};
  LoopNest nest(k.kernel);
  IndexForms forms(nest);
  Prover prover(nest, forms);
  EXPECT_FALSE(prover.follows_from_kernel(fact));  // it is asked of itself
  EXPECT_TRUE(prover.follows_from_kernel(add(sub(n, mul(loop, 4)), -1)));
  EXPECT_FALSE(prover.follows_from_kernel(add(sub(n, mul(loop, 4)), -2)));
}

}  // namespace
}  // namespace tiny
