// Products of words of which one operand is quantised on the way.
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

class ComputedWordsTest : public ::testing::Test {
 protected:
  ComputedWordsTest() { target_.dots = kAllDots; }
  void SetUp() override {
    Flags flags = testing::flags_for("null");
    flags.cache = 0;
    flags.threads = 1;
    context_ = make_ref<Context>(flags);
  }
  // Rows of 16 words, as they are or rounded on the way, times so many columns.
  Kernel product(int64_t rows, int64_t columns, bool is_computed) {
    const DType dtype = is_computed ? kFloat32 : kInt8;
    Tensor x = make_placeholder(context_, dtype, {rows, 1, 16, 4});
    if (is_computed) x = cast(round(x), kInt8);
    // As a weight is laid out: words of all columns side by side.
    const Tensor words = make_placeholder(context_, kInt8, {16, columns, 4});
    const Tensor weight = reshape(permute(words, {1, 0, 2}), {1, columns, 16, 4});
    const Tensor sums = sum_in_dtype(mul(cast(x, kInt32), cast(weight, kInt32)), {2, 3});
    const UOp stored = context_->graph().make(Op::Contiguous, {sums.node()});
    const Schedule schedule = make_schedule({&stored, 1}, target_);
    return prepare_kernel(schedule.kernels.back().kernel, target_);
  }
  bool applies(const Kernel& kernel) {
    return has_computed_words(Seen(kernel, target_, kProgramRuns));
  }

  Ref<Context> context_;
  Machine target_ = avx512_machine();
};

// Few columns: what is multiplied is not worth a kernel that stores the words.
constexpr int64_t kColumns = 4;

// Each element is computed once, with lanes, for all columns, whose sums stay in registers.
TEST_F(ComputedWordsTest, LanesLieAlongTheRowsThatAreComputed) {
  const Kernel kernel = product(57, kColumns, true);
  ASSERT_TRUE(applies(kernel));
  const OptimisedKernel chosen = optimise(kernel, target_);
  const std::string list = to_text(chosen.options);
  for (const char* wanted : {"TILE r4 16", "VEC r5", "UPCAST r1", "DOT r3"})
    EXPECT_NE(list.find(wanted), std::string::npos) << list;
}

TEST_F(ComputedWordsTest, WhatIsLoadedHasAnotherForm) {
  EXPECT_FALSE(applies(product(57, kColumns, false)));
  target_.dots = 0;
  EXPECT_FALSE(applies(product(57, kColumns, true)));
}

}  // namespace
}  // namespace tiny
