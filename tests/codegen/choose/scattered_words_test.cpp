// Products of words of which one operand has the steps of a word far apart.
#include <gtest/gtest.h>

#include <string>

#include "codegen/choose/strategies.h"
#include "codegen/pipeline.h"
#include "engine/context.h"
#include "schedule/schedule.h"
#include "tensor/elementwise.h"
#include "tensor/movement.h"
#include "tensor/program.h"
#include "tensor/reduce.h"
#include "tests/support/context.h"

namespace tiny {
namespace {

class ScatteredWordsTest : public ::testing::Test {
 protected:
  ScatteredWordsTest() { target_.dots = kAllDots; }
  // Columns of bytes that are stored by steps, as pixels are by channels, times rows of bytes.
  std::string list(int64_t rows, int64_t columns, int64_t steps) {
    const Tensor given = make_placeholder(context_, kUInt8, {steps, columns});
    const Tensor x = reshape(permute(given, {1, 0}), {1, columns, steps});
    const Tensor w = reshape(make_placeholder(context_, kInt8, {rows, steps}), {rows, 1, steps});
    const Tensor sums = sum_in_dtype(mul(cast(x, kInt32), cast(w, kInt32)), {2});
    const UOp stored = context_->graph().make(Op::Contiguous, {sums.node()});
    const Schedule schedule = make_schedule({&stored, 1}, target_);
    return to_text(
        optimise(prepare_kernel(schedule.kernels.back().kernel, target_), target_).options);
  }

  Ref<Context> context_ = testing::planning_context();
  Machine target_ = avx512_machine();
};

// A panel of the columns holds words, however few its steps are.
TEST_F(ScatteredWordsTest, APanelPutsTheStepsOfAWordSideBySide) {
  for (const int64_t steps : {32, 96, 524}) {
    const std::string found = list(64, 289, steps);
    EXPECT_NE(found.find("DOT"), std::string::npos) << steps << ": " << found;
    EXPECT_NE(found.find("STAGE p"), std::string::npos) << steps << ": " << found;
  }
}

// Without instructions for words there is nothing to put together.
TEST_F(ScatteredWordsTest, AMachineWithoutDotsHasNone) {
  target_.dots = 0;
  EXPECT_EQ(list(64, 289, 96).find("DOT"), std::string::npos);
}

}  // namespace
}  // namespace tiny
