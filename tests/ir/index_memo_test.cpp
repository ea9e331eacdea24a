#include "ir/index_memo.h"

#include <gtest/gtest.h>

#include "ir/build.h"
#include "rules/symbolic.h"

namespace tiny {
namespace {

struct Expression {
  Graph& graph;
  UOp range = graph.make(Op::Range, {graph.integer(12)}, 0);
  UOp digits = add(mul(floor_div(range, 4), 4), floor_mod(range, 4));  // the range again
};

TEST(IndexMemo, FindsWhatIsFoundWithoutIt) {
  Graph graph;
  const Expression e{graph};
  const UOp plain = simplify_index(e.digits);
  const Interval alone = bounds(e.digits);
  const IndexMemoScope memo(graph);
  for (int i = 0; i < 2; ++i) {  // made, then remembered
    EXPECT_EQ(simplify_index(e.digits), plain);
    EXPECT_EQ(bounds(e.digits), alone);
  }
  EXPECT_EQ(plain, e.range);
  EXPECT_EQ(graph.index_memo()->simplified.size(), 1u);
  EXPECT_GT(graph.index_memo()->bounds.size(), 0u);
}

// What facts allow is true only where they are.
TEST(IndexMemo, KeepsNothingThatFactsAllow) {
  Graph graph;
  const Expression e{graph};
  const UOp fact = sub(graph.integer(3), e.range);
  const UOp quotient = floor_div(e.range, 4);
  const IndexMemoScope memo(graph);
  EXPECT_TRUE(simplify_index(quotient, {&fact, 1}).is_const_int(0));
  EXPECT_EQ(simplify_index(quotient), quotient);
}

TEST(IndexMemo, IsTheOutermostScopesAndLeavesNoNodes) {
  Graph graph;
  const Expression e{graph};
  const size_t before = graph.size();
  {
    const IndexMemoScope outer(graph);
    IndexMemo* const memo = graph.index_memo();
    {
      const IndexMemoScope inner(graph);
      EXPECT_EQ(graph.index_memo(), memo);
      simplify_index(floor_div(mul(e.range, 6), 3));
    }
    EXPECT_EQ(graph.index_memo(), memo);
    EXPECT_GT(graph.size(), before);
  }
  EXPECT_EQ(graph.index_memo(), nullptr);
  EXPECT_EQ(graph.size(), before);
}

}  // namespace
}  // namespace tiny
