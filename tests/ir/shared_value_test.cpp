// Which values of rows are kept, and in which order.
#include "ir/shared_value.h"

#include <gtest/gtest.h>

#include "schedule/schedule.h"
#include "tensor/activation.h"
#include "tensor/matmul.h"
#include "tests/support/graph_test.h"

namespace tiny {
namespace {

class SharedValues : public testing::GraphTest {
 protected:
  // Those of a softmax of products of so many steps.
  std::vector<SharedValue> of_scores(int64_t steps) {
    const Tensor t = softmax(matmul(given({6, 40, steps}), given({6, steps, 210})), 2);
    const UOp wanted = t.graph().make(Op::Contiguous, {t.node()});
    schedule_ = make_schedule({&wanted, 1}, avx512_machine());
    EXPECT_EQ(schedule_.kernels.size(), 1U);
    const Kernel& kernel = schedule_.kernels.front().kernel;
    return find_shared_values(kernel, common_outer_ranges(kernel), kWorkWorthKeeping);
  }

 private:
  Schedule schedule_;
};

// The scores are wanted for the maximum too, their exponentials are not: with few steps these save
// more work, but would have the scores made twice if they came first.
TEST_F(SharedValues, ProductsAreKeptBeforeWhatIsMadeOfThem) {
  for (const int64_t steps : {8, 16, 24, 64}) {
    const std::vector<SharedValue> kept = of_scores(steps);
    ASSERT_EQ(kept.size(), 2U) << steps;
    EXPECT_EQ(kept[0].value.op(), Op::Reduce) << steps;
    EXPECT_GT(kept[0].again, kept[1].again) << steps;
    EXPECT_LT(kept[1].work, 40) << steps;  // without the product's
  }
}

}  // namespace
}  // namespace tiny
