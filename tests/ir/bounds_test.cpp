#include "ir/bounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "ir/build.h"
#include "ir/fold.h"

namespace tiny {
namespace {

UOp range(Graph& g, int64_t id, const UOp& size) {
  return g.make(Op::Range, {size}, id);
}
UOp range(Graph& g, int64_t id, int64_t size) {
  return range(g, id, g.integer(size));
}

TEST(Bounds, OfLeaves) {
  Graph g;
  EXPECT_EQ(bounds(g.integer(7)), (Interval{7, 7}));
  EXPECT_EQ(bounds(g.variable("n", -3, 9)), (Interval{-3, 9}));
  EXPECT_EQ(bounds(range(g, 0, 8)), (Interval{0, 7}));
  EXPECT_EQ(bounds(range(g, 1, g.variable("n", 1, 9))), (Interval{0, 8}));
  EXPECT_EQ(bounds(g.constant_int(kUInt64, -1)), (Interval{INT64_MAX, INT64_MAX}));
  EXPECT_EQ(bounds(g.constant(kFloat32, 3)), (Interval{3, 3}));
  EXPECT_EQ(bounds(g.constant(kFloat32, -2.5)), (Interval{-3, -2}));
  EXPECT_EQ(bounds(g.constant(kFloat32, NAN)), Interval{});
  EXPECT_EQ(bounds(g.constant(kFloat64, -1e300)), Interval{});
}

// A float that is no number becomes 0, one beyond the ends of an integer its nearest end.
TEST(Bounds, OfFloatsThatBecomeIndices) {
  Graph g;
  const UOp any = cast(g.variable("n", INT64_MIN, INT64_MAX), kFloat32);
  EXPECT_EQ(bounds(any), Interval{});
  EXPECT_EQ(bounds(cast(any, kUInt8)), (Interval{0, 255}));
  const auto clamped = [&](double low, double high) {
    return minimum(maximum(any, g.constant(kFloat32, low)), g.constant(kFloat32, high));
  };
  EXPECT_EQ(bounds(cast(clamped(0, 22), kInt64)), (Interval{0, 22}));
  EXPECT_EQ(bounds(cast(clamped(2, 21.5), kInt64)), (Interval{0, 22}));
  EXPECT_EQ(bounds(cast(clamped(-400, 22), kInt8)), (Interval{-128, 22}));
  EXPECT_EQ(bounds(cast(clamped(-4, 22), kUInt8)), (Interval{0, 22}));
  EXPECT_EQ(bounds(cast(g.make(Op::Floor, {clamped(-1, 7)}), kInt32)), (Interval{-1, 7}));
  // 16777217 is no float32, so a sum may be rounded beyond its ends.
  const UOp large = clamped(0, 16777216) + g.constant(kFloat32, 1);
  EXPECT_EQ(bounds(cast(large, kInt64)), (Interval{0, INT64_MAX}));
  EXPECT_EQ(bounds(cast(clamped(0, 9) * g.constant(kFloat32, -3), kInt64)), (Interval{-27, 0}));
  EXPECT_EQ(bounds(less(clamped(0, 9), g.constant(kFloat32, 10))), (Interval{0, 1}));  // NaN is not
}

TEST(Bounds, SaturateInsteadOfWrapping) {
  Graph g;
  const UOp n = g.variable("n", 1, INT64_MAX);
  EXPECT_EQ(bounds(n + 1), (Interval{2, INT64_MAX}));
  EXPECT_EQ(bounds(n - 1), (Interval{0, INT64_MAX}));
  EXPECT_EQ(bounds(n * n), (Interval{1, INT64_MAX}));
  EXPECT_EQ(bounds(-n).hi, -1);
  EXPECT_EQ(bounds(floor_div(n, 4)), (Interval{0, INT64_MAX}));
  EXPECT_EQ(bounds(floor_mod(g.variable("m", INT64_MIN, INT64_MAX), 4)), (Interval{0, 3}));
}

TEST(Bounds, OfNarrowDtypesAreWholeWhenTheyMayWrap) {
  Graph g;
  const UOp n = cast(g.variable("n", 0, 100), kInt8);
  EXPECT_EQ(bounds(n), (Interval{0, 100}));
  EXPECT_EQ(bounds(n + n), (Interval{-128, 127}));
  EXPECT_EQ(bounds(cast(n, kUInt8) - 1), (Interval{0, 255}));
}

TEST(Bounds, OfAMillionDeepChain) {
  Graph g;
  UOp sum = g.variable("n", 0, 9);
  const UOp one = g.integer(1);
  for (int i = 0; i < 1000000; ++i) sum = g.make(Op::Add, {sum, one});
  EXPECT_EQ(bounds(sum), (Interval{1000000, 1000009}));
}

// A random expression over `leaves`, of any integer op.
class RandomExpression {
 public:
  RandomExpression(uint32_t seed, std::vector<UOp> leaves)
      : rng_(seed), leaves_(std::move(leaves)) {}

  UOp integer(int depth) {
    Graph& g = leaves_[0].graph();
    if (depth == 0 || pick(6) == 0)
      return pick(3) ? leaves_[pick(leaves_.size())]
                     : g.constant_int(leaves_[0].dtype(), static_cast<int64_t>(pick(15)) - 7);
    const UOp a = integer(depth - 1);
    static constexpr Op kBinary[] = {
        Op::Add, Op::Mul, Op::FloorDiv, Op::FloorMod, Op::TruncDiv, Op::TruncMod, Op::Max,
        Op::Min, Op::And, Op::Or,       Op::Xor,      Op::Shl,      Op::Shr};
    switch (pick(8)) {
      case 0:
        return g.make(Op::Neg, {a});
      case 1:
        return g.make(pick(2) ? Op::Abs : Op::Not, {a});
      case 2:
        return g.make(Op::Where, {condition(depth - 1), a, integer(depth - 1)});
      case 3:
        return chosen(a, integer(depth - 1));
      default:
        return g.make(kBinary[pick(std::size(kBinary))], {a, integer(depth - 1)});
    }
  }
  UOp condition(int depth) {
    static constexpr Op kCompare[] = {Op::Less, Op::LessEqual, Op::Equal, Op::NotEqual};
    const UOp a = integer(depth > 0 ? depth - 1 : 0);
    return a.graph().make(kCompare[pick(4)], {a, integer(depth > 0 ? depth - 1 : 0)});
  }
  // A choice between integers by conditions on them.
  UOp chosen(const UOp& a, const UOp& b) {
    Graph& g = a.graph();
    UOp either = a.graph().make(pick(2) ? Op::Less : Op::LessEqual, {a, integer(0)});
    if (pick(2)) either = g.make(Op::Not, {either});
    const UOp other = g.make(pick(2) ? Op::Less : Op::LessEqual, {integer(0), pick(2) ? a : b});
    return g.make(Op::Where, {g.make(pick(2) ? Op::And : Op::Or, {either, other}), a, b});
  }
  size_t pick(size_t n) { return rng_() % n; }

 private:
  std::mt19937 rng_;
  std::vector<UOp> leaves_;
};

TEST(Bounds, OfAChoiceAreThoseThatItsConditionLeaves) {
  Graph g;
  const UOp n = g.variable("n", -1000, 1000), m = g.variable("m", -3, 2), zero = g.integer(0);
  const UOp inside = logical_and(less_equal(zero, n), less(n, 100));
  EXPECT_EQ(bounds(where(inside, n, zero)), (Interval{0, 99}));
  EXPECT_EQ(bounds(where(logical_not(inside), zero, n)), (Interval{0, 99}));
  EXPECT_EQ(bounds(where(less(n, 0), g.integer(7), n)), (Interval{0, 1000}));
  EXPECT_EQ(bounds(where(less(n, m), n, zero)), (Interval{-1000, 1}));
  EXPECT_EQ(bounds(where(less_equal(n, m), zero, n)), (Interval{-2, 1000}));
  EXPECT_EQ(bounds(where(less(m, n), zero, n)), (Interval{-1000, 2}));
  // One of two conditions says nothing of n.
  const UOp any = logical_or(less_equal(zero, n), less(n, 100));
  EXPECT_EQ(bounds(where(any, n, zero)), (Interval{-1000, 1000}));
}

TEST(Bounds, HoldEveryValueOfRandomExpressions) {
  int narrow = 0;
  for (DType t : {kInt64, kInt32, kInt8, kUInt8, kUInt32, kUInt64}) {
    Graph g;
    const UOp n = g.variable("n", -6, 7), m = g.variable("m", 0, 5);
    const UOp inputs[] = {n, m};
    RandomExpression random(11, {cast(n, t), cast(m, t)});
    for (int trial = 0; trial < 1500; ++trial) {
      const UOp e = trial % 5 ? random.integer(3) : random.condition(3);
      BoundsCache cache;
      const Interval b = cache.of(e);
      narrow += b.hi < 100 && b.lo > -100;
      Evaluator evaluate(e, inputs);
      for (int64_t i = -6; i <= 7; ++i)
        for (int64_t j = 0; j <= 5; ++j) {
          const uint64_t in[] = {bits_of_int(kInt64, i), bits_of_int(kInt64, j)};
          const uint64_t bits = evaluate(in);
          const bool huge = t == kUInt64 && e.dtype() == t && bits > INT64_MAX;
          const int64_t value = huge ? INT64_MAX : int_of(e.dtype(), bits);
          ASSERT_TRUE(b.contains(value))
              << to_string(t) << " " << expression_text(e) << " is " << value << " at n=" << i
              << " m=" << j << ", not in " << to_string(b);
        }
    }
  }
  EXPECT_GT(narrow, 2000);
}

TEST(Affine, CollectsLikeTermsInOneOrder) {
  Graph g;
  const UOp r0 = range(g, 0, 8), r1 = range(g, 1, 8), n = g.variable("n", 1, 9);
  const auto a = affine(r1 * 3 + n * 2 + (r0 + r1) * 5 - 4 + 10);
  ASSERT_TRUE(a);
  EXPECT_EQ(a->constant, 6);
  ASSERT_EQ(a->terms.size(), 3u);
  EXPECT_EQ(a->terms[0], (AffineTerm{r0, 5}));
  EXPECT_EQ(a->terms[1], (AffineTerm{r1, 8}));
  EXPECT_EQ(a->terms[2], (AffineTerm{n, 2}));
  EXPECT_EQ(to_uop(g, *a), ((r0 * 5 + r1 * 8) + n * 2) + 6);
  EXPECT_EQ(affine(r0 - r0)->terms.size(), 0u);
  EXPECT_EQ(to_uop(g, *affine(-r0 + r0)), g.integer(0));
}

TEST(Affine, MultipliesOutAndOrdersFactors) {
  Graph g;
  const UOp r0 = range(g, 0, 8), n = g.variable("n", 1, 9), m = g.variable("m", 1, 9);
  const auto a = affine((r0 + 1) * n * m);
  const auto b = affine(m * (n * r0) + n * m);
  ASSERT_TRUE(a && b);
  EXPECT_EQ(*a, *b);
  EXPECT_EQ(a->terms.size(), 2u);
}

TEST(Affine, RefusesOverflowOtherDtypesAndWhatIsTooBig) {
  Graph g;
  const UOp n = g.variable("n", 0, 9);
  EXPECT_FALSE(affine((n * INT64_MAX) * 2));
  EXPECT_FALSE(affine(cast(n, kInt32)));
  UOp doubled = n;
  for (int i = 0; i < 60; ++i) doubled = g.make(Op::Add, {doubled, doubled});
  EXPECT_FALSE(affine(doubled));
  UOp sum = n;
  for (int i = 0; i < 100; ++i) sum = sum + range(g, i, 4);
  EXPECT_FALSE(affine(sum));
}

TEST(Affine, EqualsItsExpressionOnRandomSums) {
  Graph g;
  const UOp n = g.variable("n", -6, 7), m = g.variable("m", 0, 5);
  const UOp inputs[] = {n, m};
  RandomExpression random(3, {n, m});
  for (int trial = 0; trial < 1500; ++trial) {
    const UOp e = random.integer(4);
    const auto a = affine(e);
    if (!a) continue;
    Evaluator before(e, inputs), after(to_uop(g, *a), inputs);
    for (int64_t i = -6; i <= 7; ++i)
      for (int64_t j = 0; j <= 5; ++j) {
        const uint64_t in[] = {bits_of_int(kInt64, i), bits_of_int(kInt64, j)};
        ASSERT_EQ(before(in), after(in)) << expression_text(e);
      }
    EXPECT_EQ(*affine(to_uop(g, *a)), *a);
  }
}

TEST(Slack, WithoutQuotientsHasTheSameSign) {
  Graph g;
  const UOp v[] = {g.variable("a", -4, 4), g.variable("b", 0, 5)};
  std::mt19937 rng(8);
  const auto pick = [&](int64_t n) { return static_cast<int64_t>(rng()) % n; };
  const auto sum = [&] {
    UOp e = g.integer(pick(15) - 7);
    for (const UOp& x : v) e = e + x * (pick(7) - 3);
    return e;
  };
  const auto quotient = [&](const UOp& of) {
    return floor_div(of, pick(3) ? g.integer(1 + pick(6)) : v[1] + 1) * (pick(2) ? 1 : -1);
  };
  BoundsCache cache;
  int without = 0;
  for (int trial = 0; trial < 500; ++trial) {
    UOp e = sum() + quotient(pick(3) ? sum() : sum() + quotient(sum()));
    if (pick(3) == 0) e = e + quotient(sum());
    const UOp made = without_quotients(e, cache);
    const auto divides = [](const UOp& u) { return u.op() == Op::FloorDiv; };
    without += std::ranges::none_of(topological({&made, 1}), divides);
    Evaluator before(e, v), after(made, v);
    for (int64_t a = -4; a <= 4; ++a)
      for (int64_t b = 0; b <= 5; ++b) {
        const uint64_t in[] = {bits_of_int(kInt64, a), bits_of_int(kInt64, b)};
        ASSERT_EQ(static_cast<int64_t>(before(in)) >= 0, static_cast<int64_t>(after(in)) >= 0)
            << expression_text(e);
      }
  }
  EXPECT_GT(without, 250);
}

TEST(Prove, ByBoundsAndByFacts) {
  Graph g;
  const UOp r = range(g, 0, 8), k = range(g, 1, 4), n = g.variable("n", 1, 100);
  EXPECT_TRUE(prove_nonnegative(r * 4 + k));
  EXPECT_TRUE(prove_nonnegative(g.integer(7) - r));
  EXPECT_FALSE(prove_nonnegative(g.integer(6) - r));
  EXPECT_FALSE(prove_nonnegative(n - 1 - r));
  const UOp fact = n - 1 - r * 4 - k;
  EXPECT_TRUE(prove_nonnegative(n - 1 - r * 4, {&fact, 1}));
  EXPECT_TRUE(prove_nonnegative(n - 1 - r, {&fact, 1}));
  EXPECT_TRUE(prove_nonnegative(n * 2 - 2 - r * 8 - k * 2, {&fact, 1}));
  EXPECT_FALSE(prove_nonnegative(n - 2 - r * 4 - k, {&fact, 1}));
  const UOp facts[] = {n - 8 - r * 4, g.integer(3) - k};
  EXPECT_TRUE(prove_nonnegative(n - 1 - r * 4 - k, facts));  // the body of a full tile
}

TEST(Prove, ARangeIsBelowItsSymbolicSize) {
  Graph g;
  const UOp n = g.variable("n", 1, 100);
  const UOp r = range(g, 0, n), ki = range(g, 1, minimum(g.integer(16), n - r));
  EXPECT_TRUE(prove_nonnegative(n - 1 - r));
  EXPECT_FALSE(prove_nonnegative(n - 2 - r));
  EXPECT_TRUE(prove_nonnegative(n - 1 - r - ki));
  EXPECT_TRUE(prove_nonnegative(g.integer(15) - ki));
  const UOp m = g.variable("m", 1, 100), q = range(g, 2, m);
  // Row-major offsets of a symbolic shape are in bounds: the fact about r times m, which is
  // positive.
  EXPECT_TRUE(prove_nonnegative(n * m - 1 - r * m - q));
  EXPECT_FALSE(prove_nonnegative(n * m - 2 - r * m - q));
  const UOp d = g.variable("d", 1, 100), s = range(g, 3, d);
  EXPECT_TRUE(prove_nonnegative(n * m * d - 1 - (r * m + q) * d - s));
}

TEST(Prove, AQuotientIsBetweenItsMultiples) {
  Graph g;
  const UOp n = g.variable("n", 0, 100);
  EXPECT_TRUE(prove_nonnegative(floor_div(n + 15, g.integer(16)) * 16 - n));
  EXPECT_FALSE(prove_nonnegative(floor_div(n + 14, g.integer(16)) * 16 - n));
  EXPECT_TRUE(prove_nonnegative(n - floor_div(n, g.integer(16)) * 16));
  EXPECT_TRUE(prove_nonnegative(n + 15 - floor_div(n + 15, g.integer(16)) * 16));
}

TEST(Prove, SplitsMinMaxAndWhere) {
  Graph g;
  const UOp n = g.variable("n", 0, 100), m = g.variable("m", 0, 100);
  EXPECT_TRUE(prove_nonnegative(n - minimum(n, m)));
  EXPECT_TRUE(prove_nonnegative(maximum(n, m) - m));
  EXPECT_FALSE(prove_nonnegative(minimum(n, m) - n));
  EXPECT_TRUE(prove_nonnegative(n - where(less(m, 3), n, n - 2)));
  EXPECT_FALSE(prove_nonnegative(n - where(less(m, 3), n, n + 2)));
}

TEST(Prove, IsNeverWrongOnRandomFacts) {
  Graph g;
  const UOp v[] = {g.variable("a", -4, 4), g.variable("b", 0, 5), g.variable("c", -2, 6)};
  std::mt19937 rng(5);
  const auto sum = [&](int lowest) {
    UOp e = g.integer(static_cast<int64_t>(rng() % 13) + lowest);
    for (const UOp& x : v) e = e + x * (static_cast<int64_t>(rng() % 7) - 3);
    return e;
  };
  int proved = 0, by_facts = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    const UOp facts[] = {sum(-6), sum(-6)};
    UOp e = sum(-2);
    if (trial % 2) e = e + facts[trial % 4 / 2] * (1 + static_cast<int64_t>(rng() % 2));
    if (trial % 7 == 0) e = minimum(e, sum(0));
    if (!prove_nonnegative(e, facts)) continue;
    ++proved;
    by_facts += !prove_nonnegative(e);
    Evaluator value(e, v), f0(facts[0], v), f1(facts[1], v);
    for (int64_t a = -4; a <= 4; ++a)
      for (int64_t b = 0; b <= 5; ++b)
        for (int64_t c = -2; c <= 6; ++c) {
          const uint64_t in[] = {bits_of_int(kInt64, a), bits_of_int(kInt64, b),
                                 bits_of_int(kInt64, c)};
          if (static_cast<int64_t>(f0(in)) < 0 || static_cast<int64_t>(f1(in)) < 0) continue;
          ASSERT_GE(static_cast<int64_t>(value(in)), 0) << expression_text(e);
        }
  }
  EXPECT_GT(proved, 300);
  EXPECT_GT(by_facts, 100);
}

}  // namespace
}  // namespace tiny
