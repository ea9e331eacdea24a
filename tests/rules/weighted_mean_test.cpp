#include "rules/weighted_mean.h"

#include <gtest/gtest.h>

#include "ir/build.h"
#include "ir/op.h"

namespace tiny {
namespace {

class WeightedMean : public ::testing::Test {
 protected:
  UOp range(int64_t number, int64_t size = 8) { return range(number, graph_.integer(size)); }
  UOp range(int64_t number, const UOp& size) { return graph_.make(Op::Range, {size}, number); }
  UOp load(int64_t slot, const UOp& row, const UOp& column) {
    const UOp from = graph_.make(Op::Param, {}, slot, kFloat32);
    return graph_.make(Op::Load, {from, row, column}, ViewArg{{4, 8}, {8, 1}, 0}, kFloat32);
  }
  UOp reduce(Op op, const UOp& value, const UOp& over) {
    return graph_.make(Op::Reduce, {value, over}, ReduceArg{op, {}});
  }
  UOp one() { return graph_.constant(kFloat32, 1.0); }
  UOp weight(const UOp& column) {
    const UOp all = range(3, size_);
    const UOp greatest = reduce(Op::Max, load(0, row_, all), all);
    return elementwise(Op::Exp, {sub(load(0, row_, column), greatest)});
  }
  UOp total() { return reduce(Op::Add, weight(j_), j_); }
  UOp value() { return load(1, i_, k_); }
  UOp taken_out(const UOp& terms) {
    const UOp sum = reduce(Op::Add, terms, i_);
    return divide_after_sums({&sum, 1}).front();
  }
  bool stays(const UOp& terms) { return taken_out(terms) == reduce(Op::Add, terms, i_); }

  Graph graph_;
  UOp size_ = graph_.integer(8);
  UOp row_ = range(0, 4);
  UOp k_ = range(1);
  UOp i_ = range(2);
  UOp j_ = range(4);
};

TEST_F(WeightedMean, IsDividedOnceItIsSummed) {
  const UOp sum = reduce(Op::Add, weight(i_) * value(), i_);
  EXPECT_EQ(taken_out(div(weight(i_), total()) * value()), div(sum, total()));
  EXPECT_EQ(taken_out(value() * div(weight(i_), total())),
            div(reduce(Op::Add, value() * weight(i_), i_), total()));
  const UOp once = div(one(), total());
  EXPECT_EQ(taken_out(weight(i_) * once * value()), sum * once);
  EXPECT_EQ(taken_out(once * weight(i_) * value()), sum * once);
}

// A sum of no terms is 0, and 0 / 0 is not.
TEST_F(WeightedMean, IsKeptWhereThereMayBeNoTerms) {
  for (const int64_t least : {0, 1}) {
    size_ = graph_.variable("n", least, 8);
    i_ = range(2, size_);
    j_ = range(4, size_);
    EXPECT_EQ(stays(div(weight(i_), total()) * value()), least == 0);
  }
}

TEST_F(WeightedMean, IsKeptWhereWeightsMayBeLargeOrTheSumIsAnothers) {
  EXPECT_TRUE(stays(weight(i_) * value()));
  // Exponentials of anything, and what is no exponential.
  const UOp large = elementwise(Op::Exp, {load(0, row_, i_)});
  const UOp larges = reduce(Op::Add, elementwise(Op::Exp, {load(0, row_, j_)}), j_);
  EXPECT_TRUE(stays(div(large, larges) * value()));
  const UOp plain = reduce(Op::Add, load(0, row_, j_), j_);
  EXPECT_TRUE(stays(div(load(0, row_, i_), plain) * value()));
  EXPECT_TRUE(stays(div(weight(i_), plain) * value()));
  // The sum of a part, or another reduction.
  const UOp part = range(5, 7);
  EXPECT_TRUE(stays(div(weight(i_), reduce(Op::Add, weight(part), part)) * value()));
  EXPECT_TRUE(stays(div(weight(i_), reduce(Op::Max, weight(j_), j_)) * value()));
  // It does not come out of the range that it is summed over.
  EXPECT_TRUE(stays(div(weight(i_), reduce(Op::Add, weight(i_), i_)) * value()));
  EXPECT_TRUE(stays(div(value(), total()) * load(0, row_, i_)));
}

}  // namespace
}  // namespace tiny
