// Numbers that stand for dimensions: they go both ways, and nothing else is taken for one.
#include "tensor/marks.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"
#include "tests/support/context.h"
#include "tests/support/failure.h"
#include "tests/support/random_kernels.h"

namespace tiny {
namespace {

class Marks : public ::testing::Test {
 protected:
  // Whether the number is a size, a position or a dimension.
  bool is_taken(int64_t number) const {
    try {
      marks_.dim(number, "dims[0]");
      return true;
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), Status::InvalidArgument);
      EXPECT_NE(std::string(error.what()).find(cat("dims[0] is ", number)), std::string::npos);
      return false;
    }
  }
  // n, n + 1, n + 2, ..
  Ints numbers(int64_t count) {
    Ints out;
    for (int64_t i = 0; i < count; ++i) out.push_back(marks_.mark(n_ + i));
    return out;
  }

  Ref<Context> context_ = testing::new_context("interp");
  Dim n_ = Dim(context_->graph().variable("n", 2, 9));
  DimensionMarks marks_{7};
};

TEST_F(Marks, GoBothWaysAndLeaveSizesAlone) {
  for (const int64_t number : {int64_t{0}, int64_t{-1}, kDimMax, -kDimMax}) {
    EXPECT_EQ(marks_.mark(number), number);
    EXPECT_EQ(marks_.dim(number, "dims"), Dim(number));
  }
  const int64_t one = marks_.mark(n_), twice = marks_.mark(n_ + n_);
  EXPECT_NE(one, twice);
  EXPECT_EQ(marks_.mark(n_ * Dim(2)), twice);
  EXPECT_EQ(marks_.shape({3, twice, one}, "dims"), (Shape{3, n_ + n_, n_}));
  EXPECT_EQ(marks_.positions({INT64_MAX, one, INT64_MIN, -INT64_MAX}, "end"),
            (Shape{INT64_MAX, n_, INT64_MIN, -INT64_MAX}));
  EXPECT_EQ(marks_.plain({3, -1}, "sizes"), (Ints{3, -1}));
  testing::expect_failure(testing::failure_of([&] { marks_.plain({3, twice}, "sizes"); }),
                          Status::Unsupported, {"sizes[1]", "2*n", "free dimension n"});
  for (const int64_t number : {kDimMax + 1, -kDimMax - 1, INT64_MAX, INT64_MIN})
    EXPECT_FALSE(is_taken(number));
}

TEST_F(Marks, AreTheirContextsOwn) {
  DimensionMarks other(DimensionMarks::next_context()), third(DimensionMarks::next_context());
  for (int64_t i = 0; i < 1000; ++i) {
    const int64_t mark = marks_.mark(n_ + i), theirs = other.mark(n_ + i);
    EXPECT_NE(theirs, third.mark(n_ + i));
    EXPECT_TRUE(is_taken(mark));
    EXPECT_FALSE(is_taken(theirs));
    EXPECT_THROW(other.dim(mark, "dims"), Error);
    EXPECT_THROW(third.dim(theirs, "dims"), Error);
  }
}

// What the header's comment says is certain.
TEST_F(Marks, SmallArithmeticIsNeverTaken) {
  const Ints marks = numbers(300);
  testing::Choices random(1);
  for (const int64_t mark : marks) {
    const auto bits = static_cast<uint64_t>(mark);
    Ints made{-mark, ~mark};
    for (int64_t i = 1; i <= 64; ++i) {
      made.insert(made.end(), {mark + i, mark - i, -mark + i, -mark - i, mark / (i + 1)});
      if (i > 1) {
        made.push_back(static_cast<int64_t>(bits * static_cast<uint64_t>(i)));
        made.push_back(static_cast<int64_t>(bits * static_cast<uint64_t>(-i)));
      }
    }
    for (int power = 7; power <= 40; ++power) {
      const int64_t step = int64_t{1} << power;
      made.insert(made.end(), {mark + step, mark - step, mark + step - 1, mark - step + 1});
      if (power <= 21) made.insert(made.end(), {mark / step, mark >> power});
    }
    for (int i = 0; i < 20; ++i) {
      const int64_t more = 1 + random.below(kDimMax),
                    other = marks[static_cast<size_t>(random.below(std::ssize(marks)))];
      made.insert(made.end(), {mark + more, mark - more, mark / (2 + random.below(1 << 21))});
      made.push_back(static_cast<int64_t>(bits + static_cast<uint64_t>(other)));
      if (other != mark) made.push_back(mark - other);
    }
    for (const int64_t number : made) ASSERT_FALSE(is_taken(number)) << number << " of " << mark;
  }
}

// Any arithmetic at all gives a size by accident only, as any number would.
TEST_F(Marks, LargeArithmeticIsTakenByAccidentOnly) {
  const Ints marks = numbers(100);
  testing::Choices random(1);
  const auto any = [&] {
    return static_cast<uint64_t>(random.below(int64_t{1} << 32)) << 32 |
           static_cast<uint64_t>(random.below(int64_t{1} << 32));
  };
  int taken = 0;
  for (int i = 0; i < 200000; ++i) {
    const auto mark = static_cast<uint64_t>(marks[static_cast<size_t>(random.below(100))]);
    const uint64_t made[] = {mark * any(), mark + any(), mark ^ any()};
    taken += is_taken(static_cast<int64_t>(made[i % 3]));
  }
  EXPECT_LE(taken, 1) << "of 200000, where 0.02 are to be expected";
}

TEST_F(Marks, MultiplesThatComeNearToSizesAreSeen) {
  EXPECT_TRUE(is_far_from_sizes(marks_.mark(n_)));
  EXPECT_FALSE(is_far_from_sizes(5));
  EXPECT_FALSE(is_far_from_sizes(INT64_MIN));                  // twice is 0
  EXPECT_FALSE(is_far_from_sizes(INT64_MIN / 16 + 3));         // 32 times is 96
  EXPECT_FALSE(is_far_from_sizes(-(INT64_MAX / 21) + 10000));  // 42 times
  EXPECT_TRUE(is_far_from_sizes(INT64_MIN / 64));              // 128 times is 0
}

}  // namespace
}  // namespace tiny
