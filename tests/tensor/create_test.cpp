// Tensors of numbers that follow a rule.
#include "tensor/create.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tests/support/context.h"
#include "tests/support/failure.h"
#include "tests/support/tensors.h"

namespace tiny {
namespace {

using testing::expect_failure;
using testing::failure_of;
using testing::Floats;
using testing::floats_of;

class Create : public ::testing::Test {
 protected:
  Ref<Context> context_ = testing::new_context("interp");
};

TEST_F(Create, RangesEndBeforeTheirLimit) {
  EXPECT_TRUE(range_count(Dim(0), Dim(10), 3).is(4));
  EXPECT_TRUE(range_count(Dim(0), Dim(9), 3).is(3));
  EXPECT_TRUE(range_count(Dim(5), Dim(-5), -4).is(3));
  EXPECT_TRUE(range_count(Dim(5), Dim(6), -1).is(0));
  EXPECT_TRUE(range_count(Dim(5), Dim(5), 1).is(0));
  EXPECT_EQ(range_count(0.0, 1.0, 0.25), 4);
  EXPECT_EQ(range_count(0.0, 1.01, 0.25), 5);
  EXPECT_EQ(range_count(1.0, 0.0, 0.25), 0);
  const UOp n = context_->graph().variable("N", 1, 100);
  EXPECT_EQ(to_string(range_count(Dim(1), Dim(n) + 1, 1)), "N");
}

TEST_F(Create, RangesThatCannotBeAreRefused) {
  expect_failure(failure_of([&] { range_count(Dim(0), Dim(1), 0); }), Status::InvalidArgument,
                 {"steps of 0"});
  expect_failure(failure_of([&] { range_count(0.0, 1.0, 0.0); }), Status::InvalidArgument,
                 {"steps of 0"});
  expect_failure(failure_of([&] { range_count(0.0, 1e30, 1.0); }), Status::Limit, {"elements"});
  for (const double limit : {HUGE_VAL, std::nan("")})
    expect_failure(failure_of([&] { range_count(0.0, limit, 1.0); }), Status::Limit, {"elements"});
}

TEST_F(Create, RangesAreOfTheirDtype) {
  const Tensor like = full(context_, kFloat32, {}, 0);
  EXPECT_EQ(floats_of(range(number(like, 1.5), number(like, -0.5), 4)), (Floats{1.5, 1, 0.5, 0}));
  // In float16 a step of 1/3 would drift.
  const Tensor half = full(context_, kFloat16, {}, 0);
  const Floats steps = floats_of(cast(range(half, number(half, 1.0 / 3), 1000), kFloat32));
  EXPECT_NEAR(steps[999], 999 * floats_of(cast(number(half, 1.0 / 3), kFloat32))[0], 0.2);
}

TEST_F(Create, EyesHaveTheirDiagonalAnywhere) {
  EXPECT_EQ(floats_of(eye(context_, kFloat32, 2, 3)), (Floats{1, 0, 0, 0, 1, 0}));
  EXPECT_EQ(floats_of(eye(context_, kFloat32, 2, 3, 2)), (Floats{0, 0, 1, 0, 0, 0}));
  EXPECT_EQ(floats_of(eye(context_, kFloat32, 3, 2, -1)), (Floats{0, 0, 1, 0, 0, 1}));
  EXPECT_EQ(floats_of(eye(context_, kFloat32, 2, 2, INT64_MAX)), (Floats{0, 0, 0, 0}));
}

}  // namespace
}  // namespace tiny
