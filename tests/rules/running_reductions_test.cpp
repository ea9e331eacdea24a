// Reductions of what stands up to each element become values that run along its axis.
#include "rules/running_reductions.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "schedule/schedule.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"
#include "tests/support/graph_test.h"

namespace tiny {
namespace {

class RunningReductions : public testing::GraphTest {
 protected:
  static constexpr int64_t kSteps = 40;

  // Of each of 40 rows, the `op` of those whose place is taken; for the others `nothing`.
  Tensor of_taken(const Tensor& rows, const Tensor& taken, Op op = Op::Add, int64_t nothing = 0) {
    return reduce_as_is(where(taken, unsqueeze(rows, {0}), number_int(rows, nothing)), op, {1},
                        false);
  }
  Tensor to() { return positions(context_, kInt64, kSteps, 0, 3); }
  Tensor from() { return positions(context_, kInt64, kSteps, 1, 3); }
  Tensor rows() { return given({kSteps, 24}); }

  static bool has(const Kernel& kernel, Op op) {
    return std::ranges::any_of(topological(kernel.roots),
                               [&](const UOp& u) { return u.op() == op; });
  }
  void expect_running(const Tensor& value, bool wanted) {
    const UOp root = value.node();
    const Schedule schedule = make_schedule({&root, 1}, avx512_machine());
    ASSERT_EQ(schedule.kernels.size(), 1U);
    const Kernel& kernel = schedule.kernels.front().kernel;
    EXPECT_EQ(has(kernel, Op::Running), wanted) << to_string(kernel);
    EXPECT_EQ(has(kernel, Op::Reduce), !wanted) << to_string(kernel);
    EXPECT_EQ(kernel.ranges.size(), wanted ? 2U : 3U) << to_string(kernel);
  }
};

TEST_F(RunningReductions, GoUpToEachElementFromEitherEnd) {
  expect_running(of_taken(rows(), less_equal(from(), to())), true);
  expect_running(of_taken(rows(), less(from(), to())), true);
  expect_running(of_taken(rows(), less_equal(to(), from())), true);
  expect_running(of_taken(rows(), less(to(), from())), true);
  expect_running(of_taken(rows(), less_equal(from(), to()), Op::Mul, 1), true);
}

TEST_F(RunningReductions, GoUpToOneOfTheElementsBefore) {
  const Tensor before = sub(to(), number_int(to(), 3));
  expect_running(of_taken(rows(), less_equal(from(), before)), true);
}

TEST_F(RunningReductions, AreNoneWithWhatIsBehind) {
  const Tensor behind = add(to(), number_int(to(), 1));
  expect_running(of_taken(rows(), less_equal(from(), behind)), false);
}

TEST_F(RunningReductions, AreNoneOfWhatOthersCountFor) {
  expect_running(of_taken(rows(), less_equal(from(), to()), Op::Add, 1), false);
  expect_running(of_taken(rows(), less_equal(from(), to()), Op::Max, 0), false);
}

TEST_F(RunningReductions, AreNoneOfWhatIsAnotherForEach) {
  const Tensor each = mul(unsqueeze(rows(), {0}), cast(to(), kFloat32));
  const Tensor chosen = where(less_equal(from(), to()), each, number_int(each, 0));
  expect_running(reduce_as_is(chosen, Op::Add, {1}, false), false);
}

TEST_F(RunningReductions, AreFoundInResultsThatAreFlattened) {
  const Tensor sums = of_taken(rows(), less_equal(from(), to()));
  const Tensor flat = reshape(sums, {kSteps * 24});
  expect_running(flat.with(flat.graph().make(Op::Contiguous, {flat.node()})), true);
}

}  // namespace
}  // namespace tiny
