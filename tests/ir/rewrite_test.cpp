#include "ir/rewrite.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "ir/build.h"
#include "tests/support/failure.h"

namespace tiny {
namespace {

using namespace pattern_words;

// clang-format off
constexpr WrittenRule kSums[] = {
    rule(x + 0,                 x),
    rule((i + c0) + c1,         i + (c0 + c1)),
    rule(i + i,                 i * 2),
    rule(i * c0 + i * c1,       i * (c0 + c1)),
    rule(i % c0,                i,              lo(i) >= 0 && hi(i) < c0),
};
// clang-format on
constexpr WrittenRule kPingPong[] = {
    rule(i - j, -(j - i)),
    rule(-(i - j), j - i),
    rule(i* j, j* i, [](const Match&) { return true; }),
};
constexpr WrittenRule kGrowing[] = {rule(max(i, j), max(i, j) + 1)};

const RuleSet& sums() {
  static const RuleSet set{rule_table<kSums>("sums")};
  return set;
}

UOp raw(Op op, UOp a, UOp b) {
  Graph& g = a.graph();
  return g.make(op, {std::move(a), std::move(b)});
}

TEST(Pattern, ReadsAsAlgebra) {
  EXPECT_EQ(to_string((i + c0) + c1), "((i + c0) + c1)");
  EXPECT_EQ(to_string(where(!b, f * -0.5, max(x, 1))), "where(not(b), (f * -0.5), max(x, 1))");
  EXPECT_EQ(to_string(rule_table<kSums>("sums").rules()[1]).substr(0, 17), "rewrite_test.cpp:");
  EXPECT_NE(kSums[0].line, kSums[1].line);
}

TEST(Pattern, TheSameNameIsTheSameNode) {
  Graph g;
  BoundsCache cache;
  const UOp n = g.variable("n", 0, 9), m = g.variable("m", 0, 9);
  const UOp twice = raw(Op::Add, n, n), mixed = raw(Op::Add, n, m);
  Match on_twice(twice, cache, {}), on_mixed(mixed, cache, {});
  EXPECT_TRUE(match_in_order(i + i, twice, on_twice));
  EXPECT_FALSE(match_in_order(i + i, mixed, on_mixed));
}

TEST(Pattern, WildcardsAreTyped) {
  Graph g;
  BoundsCache cache;
  const UOp n = g.variable("n", 0, 9), one = g.constant(kFloat32, 1);
  const UOp float_sum = raw(Op::Add, cast(n, kFloat32), one);
  const auto matches = [&](const Pattern& p) {
    Match m(float_sum, cache, {});
    return match_in_order(p, float_sum, m);
  };
  EXPECT_TRUE(matches(f + c0));
  EXPECT_TRUE(matches(x + 1));
  EXPECT_TRUE(matches(x + 1.0));
  EXPECT_FALSE(matches(x + 2));
  EXPECT_FALSE(matches(i + y));
  EXPECT_FALSE(matches(b + y));
  EXPECT_FALSE(matches(c0 + c1));
}

TEST(Pattern, FloatLiteralsMatchByBits) {
  Graph g;
  BoundsCache cache;
  const UOp n = cast(g.variable("n", 0, 9), kFloat64);
  const UOp sum = raw(Op::Add, n, g.constant(kFloat64, -0.0));
  Match m(sum, cache, {});
  EXPECT_FALSE(match_in_order(x + 0, sum, m));
  m.unbind_all();
  EXPECT_FALSE(match_in_order(x + 0.0, sum, m));
  m.unbind_all();
  EXPECT_TRUE(match_in_order(x + -0.0, sum, m));
}

TEST(Pattern, EveryOrderOfCommutativeOperandsIsTried) {
  EXPECT_EQ(commuted_forms((i + c0) + c1).size(), 4u);
  EXPECT_EQ(commuted_forms(i + i).size(), 1u);
  EXPECT_EQ(commuted_forms(i / c0).size(), 1u);
  Graph g;
  const UOp n = g.variable("n", 0, 9), two = g.integer(2), three = g.integer(3);
  for (const UOp& e :
       {raw(Op::Add, raw(Op::Add, n, two), three), raw(Op::Add, three, raw(Op::Add, n, two)),
        raw(Op::Add, three, raw(Op::Add, two, n))})
    EXPECT_EQ(rewrite(e, sums()), n + 5);
}

TEST(Pattern, ConditionsFailOnOverflowInsteadOfWrapping) {
  Graph g;
  BoundsCache cache;
  const UOp n = g.variable("n", 0, 9);
  const UOp e = raw(Op::Mul, n, g.integer(INT64_MAX));
  Match m(e, cache, {});
  ASSERT_TRUE(match_in_order(i * c0, e, m));
  EXPECT_FALSE(evaluate(c0 * 2 > 0, m));
  EXPECT_EQ(evaluate(c0 > 0 && lo(i) == 0 && hi(i) == 9, m), 1);
  EXPECT_EQ(evaluate(c0 < 0 && c0 * 2 > 0, m), 0);
}

TEST(Pattern, LiteralsTakeTheDtypeBesideThem) {
  Graph g;
  BoundsCache cache;
  const UOp n = cast(g.variable("n", 0, 9), kFloat32);
  const UOp e = raw(Op::Less, n, n);
  Match m(e, cache, {});
  ASSERT_TRUE(match_in_order(f < f, e, m));
  const UOp made = build(f * 2 < 3, m);
  EXPECT_EQ(made.dtype(), kBool);
  EXPECT_EQ(made.src(1), g.constant(kFloat32, 3));
  EXPECT_EQ(made.src(0).src(1), g.constant(kFloat32, 2));
  EXPECT_EQ(build(Pattern(1), m), g.boolean(true));
}

TEST(Rewrite, FoldsConstantsAndReachesAFixedPoint) {
  Graph g;
  const UOp n = g.variable("n", 0, 9);
  const UOp product = raw(Op::Mul, n, raw(Op::Add, g.integer(1), g.integer(2)));
  const UOp e =
      raw(Op::FloorMod, raw(Op::Add, product, raw(Op::Mul, n, g.integer(-2))), g.integer(10));
  RewriteStats stats;
  EXPECT_EQ(rewrite(e, sums(), &stats), n);
  EXPECT_EQ(stats.folded, 1u);  // the sum of the coefficients is folded while it is built
}

TEST(Rewrite, CountsAndTracesEachRule) {
  Graph g;
  const UOp n = g.variable("n", 0, 9);
  const UOp e =
      raw(Op::Add, raw(Op::Add, raw(Op::Add, n, g.integer(1)), g.integer(2)), g.integer(-3));
  RewriteStats stats;
  std::string seen;
  const Trace trace = [&](const RewriteStep& step) { seen += to_string(step) + "\n"; };
  EXPECT_EQ(rewrite(e, sums(), &stats, &trace), n);
  EXPECT_EQ(stats.rows.size(), std::size(kSums));
  EXPECT_EQ(stats.rows[1].matches, 2u);
  EXPECT_GE(stats.rows[1].tries, 2u);
  EXPECT_NE(seen.find("((i + c0) + c1) -> (i + (c0 + c1))"), std::string::npos) << seen;
  EXPECT_NE(seen.find("((n + 1) + 2)\n  -> (n + 3)"), std::string::npos) << seen;
  EXPECT_NE(to_string(stats).find("rewrite_test.cpp:"), std::string::npos);
}

TEST(Rewrite, AMillionDeepChainNeedsNoStack) {
  Graph g;
  const UOp n = g.variable("n", 0, 9), one = g.integer(1);
  UOp e = g.make(Op::Add, {n, g.integer(0)});
  for (int at = 0; at < 1000000; ++at) e = g.make(Op::Max, {e, one});
  const UOp after = rewrite(e, sums());
  EXPECT_FALSE(after == e);
  EXPECT_EQ(topological({&after, 1}).size(), 1000002u);
}

TEST(Rewrite, ALongSumOfConstantsFolds) {
  Graph g;
  const UOp n = g.variable("n", 0, 9), one = g.integer(1);
  UOp e = n;
  for (int at = 0; at < 20000; ++at) e = g.make(Op::Add, {e, one});
  EXPECT_EQ(rewrite(e, sums()), n + 20000);
}

TEST(Rewrite, SharedNodesAreRewrittenOnce) {
  Graph g;
  UOp e = raw(Op::Add, g.variable("n", 0, 9), g.integer(0));
  for (int at = 0; at < 60; ++at) e = raw(Op::Max, e, raw(Op::Min, e, g.integer(at)));
  RewriteStats stats;
  rewrite(e, sums(), &stats);
  EXPECT_EQ(stats.rows[0].matches, 1u);
  EXPECT_LT(stats.rows[0].tries, 10u);
}

TEST(Rewrite, RulesThatDoNotEndAreNamed) {
  Graph g;
  const UOp n = g.variable("n", 0, 9), m = g.variable("m", 0, 9);
  const auto expect_named = [&](const RuleTable& rules, const UOp& e, const char* name) {
    const RuleSet set{rules};
    testing::expect_failure(testing::failure_of([&] { rewrite(e, set); }), Status::Internal,
                            {name});
  };
  expect_named(rule_table<kPingPong>("planted"), raw(Op::Mul, n, m), "rewrite_test.cpp:");
  expect_named(rule_table<kGrowing>("planted"), raw(Op::Max, n, m), "max(i, j) -> (max(i, j) + 1)");
}

TEST(Rewrite, ARuleMustKeepTheDtype) {
  static constexpr WrittenRule kWrong[] = {rule(i < j, i)};
  Graph g;
  const UOp n = g.variable("n", 0, 9), m = g.variable("m", 0, 9);
  const RuleSet set{rule_table<kWrong>("planted")};
  EXPECT_THROW(rewrite(raw(Op::Less, n, m), set), Error);
}

TEST(Rewrite, IndexTablesLeaveOtherDtypesAlone) {
  Graph g;
  const RuleSet set{rule_table<kSums>("sums", true)};
  const UOp n = g.variable("n", 0, 9), n32 = cast(n, kInt32);
  EXPECT_EQ(rewrite(raw(Op::Add, n, n), set), n * 2);
  EXPECT_EQ(rewrite(raw(Op::Add, n32, n32), set), raw(Op::Add, n32, n32));
}

TEST(Rewrite, AMemoSurvivesBetweenCallsAndOtherNodesStayLeaves) {
  Graph g;
  const UOp n = g.variable("n", 0, 9);
  const UOp r = g.make(Op::Range, {raw(Op::Add, n, g.integer(0))}, int64_t{3});
  Rewriter::Options options;
  options.only_elementwise = true;
  Rewriter rewriter(sums(), options);
  EXPECT_EQ(rewriter(raw(Op::Add, r, g.integer(0))), r);
  EXPECT_EQ(rewriter(raw(Op::Add, raw(Op::Add, r, g.integer(0)), r)), r * 2);
  EXPECT_EQ(rewrite(raw(Op::Add, r, g.integer(0)), sums()), r);  // and a Range is always one
}

}  // namespace
}  // namespace tiny
