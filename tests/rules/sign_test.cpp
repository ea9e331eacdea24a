#include "rules/sign.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "ir/build.h"
#include "ir/fold.h"
#include "rules/decompositions.h"

namespace tiny {
namespace {

class Sign : public ::testing::Test {
 protected:
  UOp range(int64_t size, int64_t number) {
    return graph_.make(Op::Range, {graph_.integer(size)}, number);
  }
  UOp param(int64_t slot) { return graph_.make(Op::Param, {}, slot, kFloat32); }
  UOp load(const UOp& from, const UOp& row, const UOp& column) {
    return graph_.make(Op::Load, {from, row, column}, ViewArg{{4, 8}, {8, 1}, 0}, kFloat32);
  }
  UOp reduce(Op op, const UOp& value, const UOp& over) {
    return graph_.make(Op::Reduce, {value, over}, ReduceArg{op, {}});
  }
  UOp value(double v) { return graph_.constant(kFloat32, v); }

  Graph graph_;
};

TEST_F(Sign, OfAValueMinusTheGreatestOfItsRowIsNeverPositive) {
  const UOp row = range(4, 0), i = range(8, 1), j = range(8, 2);
  const UOp x = load(param(0), row, i), all = load(param(0), row, j);
  const UOp greatest = reduce(Op::Max, all, j);
  EXPECT_TRUE(is_among_reduced(x, greatest));
  EXPECT_TRUE(never_positive(sub(x, greatest)));
  EXPECT_TRUE(never_positive(add(neg(greatest), x)));
  EXPECT_TRUE(never_positive(sub(all, greatest)));  // under its own name
  EXPECT_FALSE(never_positive(add(x, greatest)));
  EXPECT_FALSE(never_positive(sub(greatest, x)));
  EXPECT_FALSE(never_positive(sub(x, reduce(Op::Min, all, j))));
}

TEST_F(Sign, IsNotKnownWhereTheGreatestIsOfOtherValues) {
  const UOp row = range(4, 0), i = range(8, 1), j = range(8, 2), other_row = range(4, 3);
  const UOp shorter = range(7, 4);
  const UOp x = load(param(0), row, i);
  EXPECT_FALSE(never_positive(sub(x, reduce(Op::Max, load(param(1), row, j), j))));
  EXPECT_FALSE(never_positive(sub(x, reduce(Op::Max, load(param(0), other_row, j), j))));
  EXPECT_FALSE(never_positive(sub(x, reduce(Op::Max, load(param(0), row, shorter), shorter))));
  EXPECT_FALSE(never_positive(sub(x, reduce(Op::Max, neg(load(param(0), row, j)), j))));
  // One range of the operand cannot stand for two.
  const UOp k = range(8, 5);
  const UOp twice = load(param(0), row, j) * load(param(1), row, j);
  const UOp mixed = load(param(0), row, i) * load(param(1), row, k);
  EXPECT_FALSE(never_positive(sub(mixed, reduce(Op::Max, twice, j))));
}

TEST_F(Sign, SeesThroughSumsWithRangesOfTheirOwn) {
  const UOp row = range(4, 0), i = range(8, 1), j = range(8, 2), a = range(8, 3), b = range(8, 4);
  const auto score = [&](const UOp& column, const UOp& over) {
    return reduce(Op::Add, load(param(0), row, over) * load(param(1), column, over), over);
  };
  EXPECT_TRUE(never_positive(sub(score(i, a), reduce(Op::Max, score(j, b), j))));
  EXPECT_TRUE(never_positive(sub(score(i, a), reduce(Op::Max, score(j, a), j))));
  // A range that is closed below and free as well is no name that may change.
  const auto shifted = [&](const UOp& column, const UOp& over, const UOp& free) {
    return score(column, over) + load(param(2), row, free);
  };
  EXPECT_FALSE(never_positive(sub(shifted(i, a, a), reduce(Op::Max, shifted(j, b, b), j))));
}

TEST_F(Sign, OfPlainArithmetic) {
  const UOp x = load(param(0), range(4, 0), range(8, 1));
  EXPECT_TRUE(never_positive(value(0)));
  EXPECT_TRUE(never_positive(value(-2)));
  EXPECT_FALSE(never_positive(value(1e-30)));
  EXPECT_FALSE(never_positive(value(std::nan(""))));
  EXPECT_TRUE(never_positive(neg(x * x)));
  EXPECT_TRUE(never_positive(neg(elementwise(Op::Abs, {x}))));
  EXPECT_TRUE(never_positive(minimum(x, value(0))));
  EXPECT_TRUE(never_positive(add(neg(x * x), value(-1))));
  EXPECT_FALSE(never_positive(add(neg(x * x), value(1))));
  EXPECT_FALSE(never_positive(x));
  EXPECT_FALSE(never_positive(neg(x)));
}

// What is computed of an argument whose sign is known has the bits of what is computed of any where
// that is a normal number, and is 0 below.
TEST_F(Sign, DoesNotShowInAnExponential) {
  for (const DType t : {kFloat32, kFloat64}) {
    const UOp x = graph_.make(Op::Buffer, {}, int64_t{0}, t);
    const UOp any = decompose(elementwise(Op::Exp, {x}));
    const UOp known = decompose(elementwise(Op::Exp, {minimum(x, graph_.constant(t, 0))}));
    Evaluator of_any(any, {&x, 1}), of_known(known, {&x, 1});
    const UOp scaling = decompose(elementwise(Op::Exp, {x}), true);
    Evaluator scaled(scaling, {&x, 1});
    EXPECT_LT(scaled.size(), of_known.size());
    EXPECT_LT(of_known.size(), of_any.size());
    std::mt19937_64 rng(3);
    const double lowest = t == kFloat32 ? -110 : -760;
    std::uniform_real_distribution<double> between(lowest, 0);
    for (int i = 0; i < 50000; ++i) {
      const uint64_t bits = bits_of(t, i % 4 ? between(rng) : -std::exp2(between(rng) / 4));
      const bool is_normal = double_of(t, bits) >= (t == kFloat32 ? -87 : -708);
      ASSERT_EQ(of_known({&bits, 1}), is_normal ? of_any({&bits, 1}) : 0u) << double_of(t, bits);
      const uint64_t either = i % 2 ? bits : bits_of(t, -double_of(t, bits));
      ASSERT_EQ(scaled({&either, 1}), of_any({&either, 1})) << double_of(t, either);
    }
    for (int payload = 1; payload < 2048; ++payload) {
      const uint64_t quiet = bits_of(t, std::nan(""));
      const uint64_t bits = (quiet | static_cast<uint64_t>(payload)) ^
                            (payload % 2 ? uint64_t{1} << (t.bits() - 1) : 0);
      EXPECT_TRUE(std::isnan(double_of(t, of_known({&bits, 1})))) << payload;
      EXPECT_TRUE(std::isnan(double_of(t, of_any({&bits, 1})))) << payload;
      EXPECT_TRUE(std::isnan(double_of(t, scaled({&bits, 1})))) << payload;
    }
    const uint64_t infinite = bits_of(t, -std::numeric_limits<double>::infinity());
    EXPECT_EQ(of_known({&infinite, 1}), 0u);
    EXPECT_EQ(scaled({&infinite, 1}), 0u);
  }
}

// Beside a constant no denormal shows: the sum is made without them and has the same bits.
TEST_F(Sign, DenormalsVanishInSums) {
  for (const DType t : {kFloat32, kFloat64}) {
    for (const bool scales : {false, true}) {
      const UOp x = graph_.make(Op::Buffer, {}, int64_t{0}, t);
      const UOp e = elementwise(Op::Exp, {x});
      Evaluator exact(decompose(e, scales), {&x, 1});
      for (const double term : {1.0, -1.0, 1e-3}) {
        Evaluator sum(decompose(e + graph_.constant(t, term), scales), {&x, 1});
        Evaluator difference(decompose(neg(e) + graph_.constant(t, term), scales), {&x, 1});
        const auto plus_term = [&](double value) {
          return bits_of(t, t == kFloat32 ? static_cast<float>(value) + static_cast<float>(term)
                                          : value + double_of(t, bits_of(t, term)));
        };
        const double most = t == kFloat32 ? 110 : 760;
        for (double value = -most; value < most; value += most / 500) {
          const uint64_t bits = bits_of(t, value);
          const double power = double_of(t, exact({&bits, 1}));
          ASSERT_EQ(sum({&bits, 1}), plus_term(power)) << value << " and " << term;
          ASSERT_EQ(difference({&bits, 1}), plus_term(-power)) << value << " and " << term;
        }
      }
    }
  }
}

}  // namespace
}  // namespace tiny
