// Ranges that indices divide become ranges of their own.
#include "rules/split_ranges.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/compile.h"
#include "schedule/schedule.h"
#include "tensor/movement.h"
#include "tests/support/graph_test.h"

namespace tiny {
namespace {

class SplitRanges : public testing::GraphTest {
 protected:
  // The kernel that stores [rows, 12, 64] of a permuted value as rows of columns.
  Kernel of_columns(int64_t columns) {
    const Tensor beside = reshape(permute(given({12, 16, 64}), {1, 0, 2}), to_shape({16, 768}));
    const Tensor cut = shrink(beside, {0, 0}, {16, columns});
    const UOp wanted = cut.graph().make(Op::Contiguous, {cut.node()});
    const Schedule schedule = make_schedule({&wanted, 1}, avx512_machine());
    EXPECT_EQ(schedule.kernels.size(), 1U);
    return schedule.kernels.front().kernel;
  }
  // The kernel that stores [6, columns] of values that `turns` rows take turns in, from the second
  // on.
  Kernel of_turns(int64_t turns, int64_t columns) {
    const Tensor rows = permute(given({turns, 6, 40}), {1, 2, 0});
    const Tensor all = reshape(rows, to_shape({6, 40 * turns}));
    const Tensor cut = shrink(all, {0, 1}, {6, 1 + columns});
    const UOp wanted = cut.graph().make(Op::Contiguous, {cut.node()});
    const Schedule schedule = make_schedule({&wanted, 1}, avx512_machine());
    EXPECT_EQ(schedule.kernels.size(), 1U);
    return schedule.kernels.front().kernel;
  }
  static Ints sizes_of(const Kernel& kernel) {
    Ints sizes;
    for (const KernelRange& r : kernel.ranges) sizes.push_back(r.range.src(0).const_int());
    return sizes;
  }
  static bool divides(const Kernel& kernel) {
    return std::ranges::any_of(topological(kernel.roots), [](const UOp& u) {
      return u.op() == Op::FloorDiv || u.op() == Op::FloorMod;
    });
  }
};

TEST_F(SplitRanges, AnExactDivisorMakesTwoRanges) {
  const Kernel kernel = of_columns(768);
  ASSERT_EQ(sizes_of(kernel), (Ints{16, 768}));
  ASSERT_TRUE(divides(kernel));
  const Kernel split = split_at_exact_divisors(kernel);
  EXPECT_EQ(sizes_of(split), (Ints{16, 12, 64}));
  EXPECT_FALSE(divides(split)) << to_string(split);
  for (const KernelRange& r : split.ranges) EXPECT_FALSE(r.reduced);
}

TEST_F(SplitRanges, ADivisorOfAllSizesThatARunMaySayMakesTwoRanges) {
  const UOp n = context_->graph().variable("n", 2, 256);
  const Shape shape{Dim(4), Dim(3), Dim(n)};
  const UOp input = make_input(*context_, kFloat32, product(shape));
  const Tensor turns = permute(reshape(Tensor(context_, input), shape), {0, 2, 1});
  const Tensor rows = reshape(turns, {Dim(4), Dim(n) * 3});
  const UOp wanted = rows.graph().make(Op::Contiguous, {rows.node()});
  const Kernel kernel = make_schedule({&wanted, 1}, avx512_machine()).kernels.front().kernel;
  ASSERT_TRUE(divides(kernel));
  const Kernel split = split_at_exact_divisors(kernel);
  EXPECT_FALSE(divides(split)) << to_string(split);
  ASSERT_EQ(split.ranges.size(), 3U);
  EXPECT_EQ(split.ranges[1].range.src(0), n);
  EXPECT_TRUE(split.ranges[2].range.src(0).is_const_int(3));
}

TEST_F(SplitRanges, ADivisorThatLeavesARestMakesNone) {
  const Kernel kernel = of_columns(100);
  ASSERT_TRUE(divides(kernel));
  const Kernel same = split_at_exact_divisors(kernel);
  EXPECT_EQ(sizes_of(same), sizes_of(kernel));
  EXPECT_TRUE(same.roots == kernel.roots);
}

// What remains is divided by the short range alone: each of its steps has a place of its own.
TEST_F(SplitRanges, TurnsFromTheMiddleAreARange) {
  const Kernel kernel = of_turns(3, 87);
  ASSERT_EQ(sizes_of(kernel), (Ints{6, 87}));
  const Kernel split = split_at_exact_divisors(kernel);
  ASSERT_EQ(sizes_of(split), (Ints{6, 29, 3}));
  for (const UOp& u : topological(split.roots)) {
    const bool is_divided = u.op() == Op::FloorDiv || u.op() == Op::FloorMod;
    EXPECT_FALSE(is_divided && reaches(u, split.ranges[1].range)) << to_string(split);
  }
}

TEST_F(SplitRanges, ManyTurnsFromTheMiddleStay) {
  const Kernel kernel = of_turns(16, 320);
  ASSERT_TRUE(divides(kernel));
  EXPECT_EQ(sizes_of(split_at_exact_divisors(kernel)), sizes_of(kernel));
}

}  // namespace
}  // namespace tiny
