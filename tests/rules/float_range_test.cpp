#include "rules/float_range.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ir/build.h"

namespace tiny {
namespace {

class FloatRanges : public ::testing::Test {
 protected:
  UOp number(double value) { return graph_.constant(kFloat32, value); }
  UOp input(DType dtype) { return graph_.make(Op::Buffer, {}, int64_t{0}, dtype); }
  static UOp make(Op op, std::initializer_list<UOp> src) { return elementwise(op, src); }

  Graph graph_;
};

TEST_F(FloatRanges, BytesHaveThoseOfTheirValues) {
  const UOp real = (cast(input(kUInt8), kFloat32) + number(-130)) * number(0.5);
  const auto range = range_of_float(real);
  ASSERT_TRUE(range);
  EXPECT_LE(range->lo, -65);
  EXPECT_NEAR(range->lo, -65, 0.1);
  EXPECT_GE(range->hi, 62.5);
  EXPECT_NEAR(range->hi, 62.5, 0.1);
  const UOp gate = make(Op::Div, {number(1), make(Op::Exp, {neg(real)}) + number(1)});
  const auto shares = range_of_float(gate);
  ASSERT_TRUE(shares);
  EXPECT_TRUE(shares->is_finite());
  EXPECT_LT(shares->hi, 1.01);
}

TEST_F(FloatRanges, BitsHaveThoseOfTheirFloats) {
  const auto bits = [&](uint64_t value) { return graph_.constant_bits(kUInt32, value); };
  const auto float_of = [&](const UOp& word) {
    return graph_.make(Op::Bitcast, {word}, {}, kFloat32);
  };
  const UOp drawn = make(Op::Shr, {input(kUInt32), bits(9)});
  const auto range = range_of_float(float_of(make(Op::Or, {drawn, bits(0x3F800000)})));
  ASSERT_TRUE(range);
  EXPECT_NEAR(range->lo, 1, 1e-3);
  EXPECT_NEAR(range->hi, 2, 1e-3);
  EXPECT_FALSE(range_of_float(float_of(input(kUInt32))));
  EXPECT_FALSE(range_of_float(float_of(input(kInt32))));
  EXPECT_FALSE(range_of_float(float_of(make(Op::Or, {drawn, bits(0x7F800000)}))));
}

TEST_F(FloatRanges, WhatMayBeNoNumberHasNone) {
  const UOp x = input(kFloat32), byte = cast(input(kUInt8), kFloat32);
  EXPECT_FALSE(range_of_float(x));
  EXPECT_FALSE(range_of_float(make(Op::Max, {x, number(0)})));
  EXPECT_FALSE(range_of_float(number(std::nan(""))));
  EXPECT_FALSE(range_of_float(make(Op::Div, {byte, byte})));           // 0 / 0
  EXPECT_FALSE(range_of_float(number(HUGE_VAL) + number(-HUGE_VAL)));  // inf - inf
  EXPECT_FALSE(range_of_float(byte * make(Op::Exp, {byte * byte})));   // 0 * inf
  const auto large = range_of_float(make(Op::Exp, {byte}));
  ASSERT_TRUE(large);
  EXPECT_FALSE(large->is_finite());
  EXPECT_TRUE(range_of_float(make(Op::Div, {number(1), make(Op::Exp, {byte})}))->is_finite());
}

TEST_F(FloatRanges, ManyOperationsAreNotLookedThrough) {
  UOp x = cast(input(kUInt8), kFloat32);
  for (int i = 0; i < 1000; ++i) x = x * number(1.0 + 0.001 * i);
  EXPECT_FALSE(range_of_float(x));
}

TEST_F(FloatRanges, RoundedFloatsAndTheirSumsAreWhole) {
  const UOp x = input(kFloat32), rounded = make(Op::Round, {x});
  EXPECT_TRUE(is_whole(make(Op::Min, {rounded + number(3), number(255)})));
  EXPECT_TRUE(is_whole(cast(input(kInt32), kFloat32)));
  EXPECT_FALSE(is_whole(rounded + number(0.5)));
  EXPECT_FALSE(is_whole(rounded * number(2)));
  EXPECT_FALSE(is_whole(x));
}

}  // namespace
}  // namespace tiny
