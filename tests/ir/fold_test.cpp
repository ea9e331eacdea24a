#include "ir/fold.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "ir/build.h"

namespace tiny {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNaN = std::nan("");

int64_t fold2(DType t, Op op, int64_t a, int64_t b) {
  Graph g;
  const UOp src[] = {g.constant_int(t, a), g.constant_int(t, b)};
  return fold(op, src)->const_int();
}
double foldf(DType t, Op op, std::initializer_list<double> v) {
  Graph g;
  std::vector<UOp> src;
  for (double x : v) src.push_back(g.constant(t, x));
  const UOp r = *fold(op, src);
  return double_of(r.dtype(), r.const_bits());
}
UOp fold_cast_of(const UOp& from, DType to) {
  return *fold(Op::Cast, {&from, 1}, to);
}

TEST(Fold, IntegersWrapAtTheirWidth) {
  EXPECT_EQ(fold2(kInt8, Op::Add, 127, 1), -128);
  EXPECT_EQ(fold2(kUInt8, Op::Add, 255, 1), 0);
  EXPECT_EQ(fold2(kInt16, Op::Mul, 300, 300), 24464);
  EXPECT_EQ(fold2(kUInt32, Op::Mul, 0xFFFFFFFF, 2), 0xFFFFFFFE);
  EXPECT_EQ(fold2(kInt64, Op::Add, INT64_MAX, 1), INT64_MIN);
  EXPECT_EQ(fold2(kUInt16, Op::Sub, 0, 1), 65535);
}

TEST(Fold, DivisionRoundsAsNamed) {
  EXPECT_EQ(fold2(kInt32, Op::FloorDiv, -7, 2), -4);
  EXPECT_EQ(fold2(kInt32, Op::FloorMod, -7, 2), 1);
  EXPECT_EQ(fold2(kInt32, Op::FloorMod, 7, -2), -1);
  EXPECT_EQ(fold2(kInt32, Op::FloorDiv, 7, -2), -4);
  EXPECT_EQ(fold2(kInt32, Op::TruncDiv, -7, 2), -3);
  EXPECT_EQ(fold2(kInt32, Op::TruncMod, -7, 2), -1);
  EXPECT_EQ(static_cast<uint64_t>(fold2(kUInt64, Op::FloorDiv, -1, 2)), UINT64_MAX / 2);
}

TEST(Fold, ScaleRoundsOnce) {
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(foldf(kFloat32, Op::Scale, {1.5, 3}), 12);
  EXPECT_EQ(foldf(kFloat32, Op::Scale, {1.5, -0.5}), 0.75);
  EXPECT_EQ(foldf(kFloat32, Op::Scale, {1.5, -149}), 0x1p-148);  // half to even
  EXPECT_EQ(foldf(kFloat32, Op::Scale, {1.25, -149}), 0x1p-149);
  EXPECT_EQ(foldf(kFloat32, Op::Scale, {1, 1e30}), inf);
  EXPECT_EQ(foldf(kFloat64, Op::Scale, {0x1p-1074, 2097}), 0x1p1023);
  EXPECT_EQ(foldf(kFloat32, Op::Scale, {-inf, -1e30}), -inf);
  EXPECT_TRUE(std::isnan(foldf(kFloat32, Op::Scale, {1, std::nan("")})));
}

TEST(Fold, DivisionByZeroIsZeroAndLowestByMinusOneWraps) {
  for (Op op : {Op::FloorDiv, Op::FloorMod, Op::TruncDiv, Op::TruncMod})
    for (DType t : {kInt8, kUInt8, kInt32, kInt64, kUInt64}) EXPECT_EQ(fold2(t, op, 5, 0), 0);
  EXPECT_EQ(fold2(kInt64, Op::FloorDiv, INT64_MIN, -1), INT64_MIN);
  EXPECT_EQ(fold2(kInt64, Op::TruncDiv, INT64_MIN, -1), INT64_MIN);
  EXPECT_EQ(fold2(kInt64, Op::FloorMod, INT64_MIN, -1), 0);
  EXPECT_EQ(fold2(kInt8, Op::TruncDiv, -128, -1), -128);
  EXPECT_EQ(fold2(kInt32, Op::FloorDiv, INT32_MIN, -1), INT32_MIN);
}

TEST(Fold, ShiftsOutOfRangeGiveZeroOrTheSign) {
  EXPECT_EQ(fold2(kInt32, Op::Shl, 1, 31), INT32_MIN);
  EXPECT_EQ(fold2(kInt32, Op::Shl, 1, 32), 0);
  EXPECT_EQ(fold2(kInt32, Op::Shl, 1, -1), 0);
  EXPECT_EQ(fold2(kInt8, Op::Shr, -128, 8), -1);
  EXPECT_EQ(fold2(kInt8, Op::Shr, -128, -1), -1);
  EXPECT_EQ(fold2(kUInt8, Op::Shr, 128, 8), 0);
  EXPECT_EQ(fold2(kUInt8, Op::Shr, 128, 7), 1);
  EXPECT_EQ(fold2(kUInt64, Op::Shl, 1, 63), INT64_MIN);
}

TEST(Fold, UnsignedComparesAsUnsigned) {
  EXPECT_EQ(fold2(kUInt64, Op::Less, 1, -1), 1);
  EXPECT_EQ(fold2(kInt64, Op::Less, 1, -1), 0);
  EXPECT_EQ(fold2(kUInt64, Op::Max, 1, -1), -1);
  EXPECT_EQ(fold2(kUInt8, Op::Min, 200, 100), 100);
}

TEST(Fold, NaNGoesThroughMaxAndMin) {
  for (DType t : {kFloat16, kBFloat16, kFloat32, kFloat64}) {
    for (Op op : {Op::Max, Op::Min}) {
      EXPECT_TRUE(std::isnan(foldf(t, op, {kNaN, 1})));
      EXPECT_TRUE(std::isnan(foldf(t, op, {1, kNaN})));
    }
    EXPECT_EQ(foldf(t, Op::Max, {-kInf, 3}), 3);
    EXPECT_TRUE(std::signbit(foldf(t, Op::Max, {-0.0, 0.0})));  // b > a is false: a
  }
}

TEST(Fold, FloatsRoundAfterEachOp) {
  EXPECT_EQ(foldf(kFloat16, Op::Add, {2048, 1}), 2048);
  EXPECT_EQ(foldf(kBFloat16, Op::Mul, {1.0078125, 1.0078125}), 1.015625);
  EXPECT_EQ(foldf(kFloat16, Op::Mul, {65504, 2}), kInf);
  EXPECT_EQ(foldf(kFloat32, Op::Add, {16777216, 1}), 16777216);
  EXPECT_EQ(foldf(kFloat32, Op::Fma, {16777217, 1, -16777216}), 0);
  EXPECT_EQ(foldf(kFloat64, Op::Fma, {1 + 0x1p-52, 1 - 0x1p-52, -1}), -0x1p-104);
  EXPECT_EQ(foldf(kFloat32, Op::Round, {2.5}), 2);
  EXPECT_EQ(foldf(kFloat32, Op::Round, {-3.5}), -4);
  EXPECT_TRUE(std::signbit(foldf(kFloat64, Op::Neg, {0.0})));
}

TEST(Fold, FloatToIntegerTruncatesAndSaturates) {
  Graph g;
  EXPECT_EQ(fold_cast_of(g.constant(kFloat32, -2.9), kInt32).const_int(), -2);
  EXPECT_EQ(fold_cast_of(g.constant(kFloat32, 1e20), kInt32).const_int(), INT32_MAX);
  EXPECT_EQ(fold_cast_of(g.constant(kFloat64, 1e300), kInt64).const_int(), INT64_MAX);
  EXPECT_EQ(fold_cast_of(g.constant(kFloat64, -kInf), kInt8).const_int(), -128);
  EXPECT_EQ(fold_cast_of(g.constant(kFloat32, -5), kUInt8).const_int(), 0);
  EXPECT_EQ(fold_cast_of(g.constant(kFloat32, 300), kUInt8).const_int(), 255);
  EXPECT_EQ(fold_cast_of(g.constant(kFloat32, kNaN), kInt64).const_int(), 0);
  EXPECT_EQ(fold_cast_of(g.constant(kFloat64, 0x1p63), kUInt64).const_int(), INT64_MIN);
  EXPECT_EQ(fold_cast_of(g.constant(kFloat32, kNaN), kBool).const_int(), 1);
  EXPECT_EQ(fold_cast_of(g.constant(kFloat32, -0.0), kBool).const_int(), 0);
}

TEST(Fold, IntegerCastsWrapAndWiden) {
  Graph g;
  EXPECT_EQ(fold_cast_of(g.constant_int(kInt32, 300), kInt8).const_int(), 44);
  EXPECT_EQ(fold_cast_of(g.constant_int(kInt8, -1), kUInt32).const_int(), 0xFFFFFFFF);
  EXPECT_EQ(fold_cast_of(g.constant_int(kUInt8, 255), kInt64).const_int(), 255);
  EXPECT_EQ(fold_cast_of(g.constant_int(kInt32, 256), kBool).const_int(), 1);
  const UOp big = fold_cast_of(g.constant_int(kUInt64, -1), kFloat64);
  EXPECT_EQ(double_of(kFloat64, big.const_bits()), 0x1p64);
  // 2^24 + 2^16 + 1 would round to even below if it went through a double.
  const UOp once =
      fold_cast_of(g.constant_int(kInt64, (int64_t{1} << 60) + (int64_t{1} << 36) + 1), kFloat32);
  EXPECT_EQ(double_of(kFloat32, once.const_bits()), 0x1p60 + 0x1p37);
}

TEST(Fold, EveryElementwiseOpFoldsOnEveryDtypeItTakes) {
  Graph g;
  int folded = 0;
  for (size_t i = 0; i < kOpCount; ++i) {
    const Op op = static_cast<Op>(i);
    const OpInfo& o = info(op);
    if (!(o.traits & kElementwise)) continue;
    for (DType t : {kBool, kInt8, kInt16, kInt32, kInt64, kUInt8, kUInt16, kUInt32, kUInt64,
                    kFloat16, kBFloat16, kFloat32, kFloat64}) {
      const bool any = !(o.traits & (kFloatOperands | kIntOperands | kLogicOperands));
      if (!any && !(o.traits & kFloatOperands && t.is_float()) &&
          !(o.traits & kIntOperands && t.is_int()) && !(o.traits & kLogicOperands && t.is_bool()))
        continue;
      std::vector<UOp> src(static_cast<size_t>(o.arity), g.constant(t, 1));
      if (op == Op::Where) src[0] = g.boolean(true);
      const DType declared = o.result == OpResult::Declared ? t : kVoid;
      const auto value = fold(op, src, declared);
      ASSERT_TRUE(value) << o.name;
      EXPECT_EQ(value->dtype(), o.result == OpResult::Bool ? kBool : t) << o.name;
      EXPECT_EQ(value->dtype(), g.make(op, src, {}, declared).dtype()) << o.name;
      ++folded;
    }
  }
  EXPECT_GT(folded, 200);
}

TEST(Fold, OnlyConstantsFold) {
  Graph g;
  const UOp src[] = {g.variable("n", 0, 9), g.integer(1)};
  EXPECT_FALSE(fold(Op::Add, src));
  const UOp range = g.make(Op::Range, {g.integer(4)}, int64_t{0});
  EXPECT_FALSE(fold(Op::Range, {&range.src(0), 1}));
}

TEST(Evaluator, ComputesAnExpressionOfInputs) {
  Graph g;
  const UOp n = g.variable("n", -100, 100), m = g.variable("m", -100, 100);
  const UOp inputs[] = {n, m};
  Evaluator e(floor_mod(n * 3 + m, 7) + minimum(n, m), inputs);
  for (int64_t a = -20; a < 20; ++a)
    for (int64_t b = -20; b < 20; ++b) {
      const uint64_t in[] = {bits_of_int(kInt64, a), bits_of_int(kInt64, b)};
      const int64_t t = 3 * a + b;
      EXPECT_EQ(static_cast<int64_t>(e(in)), ((t % 7) + 7) % 7 + std::min(a, b));
    }
  const UOp range = g.make(Op::Range, {g.integer(4)}, int64_t{0});
  EXPECT_THROW(Evaluator(range + 1, inputs), Error);
}

TEST(Build, TrivialExpressionsFold) {
  Graph g;
  const UOp n = g.variable("n", 0, 9);
  EXPECT_EQ(n + 0, n);
  EXPECT_EQ(n * 1, n);
  EXPECT_EQ(n * 0, g.integer(0));
  EXPECT_EQ(g.integer(3) + g.integer(4), g.integer(7));
  EXPECT_EQ(n - n, g.integer(0));
  EXPECT_EQ(-(-n), n);
  EXPECT_EQ(floor_div(n, 1), n);
  EXPECT_EQ(floor_mod(n, 1), g.integer(0));
  EXPECT_EQ(g.integer(3) + n, n + 3);
  EXPECT_EQ(where(g.boolean(true), n, g.integer(1)), n);
  EXPECT_EQ(logical_and(less(n, 3), g.boolean(true)), less(n, 3));
  EXPECT_EQ(logical_not(logical_not(less(n, 3))), less(n, 3));
  EXPECT_EQ(all_of(g, {}), g.boolean(true));
  EXPECT_EQ(cast(n, kInt64), n);
  EXPECT_EQ(less(n, n), g.boolean(false));
}

TEST(Build, FloatIdentitiesThatAreFalseAreNotMade) {
  Graph g;
  const UOp x = cast(g.variable("n", 0, 9), kFloat32);
  const UOp zero = g.constant(kFloat32, 0);
  EXPECT_EQ((x * zero).op(), Op::Mul);
  EXPECT_EQ((x + zero).op(), Op::Add);
  EXPECT_EQ((x - x).op(), Op::Add);
  EXPECT_EQ(equal(x, x).op(), Op::Equal);
}

}  // namespace
}  // namespace tiny
