// Losses of classification against sums written out.
#include "tensor/loss.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tensor/activation.h"
#include "tensor/elementwise.h"
#include "tests/support/context.h"
#include "tests/support/failure.h"
#include "tests/support/tensors.h"

namespace tiny {
namespace {

using testing::expect_failure;
using testing::failure_of;
using testing::Floats;
using testing::floats;
using testing::floats_of;

class Loss : public ::testing::TestWithParam<std::string> {
 protected:
  Tensor ints(const Ints& values) const {
    return from_data(context_, kInt64, {std::ssize(values)}, values.data(), std::ssize(values) * 8);
  }
  Ref<Context> context_ = testing::new_context(GetParam());
  const Tensor log_probability_ = floats(context_, {-1, -2, -3, -4, -5, -6}, {2, 3});
};

INSTANTIATE_TEST_SUITE_P(Devices, Loss, ::testing::Values("cpu", "interp"));

TEST_P(Loss, TheTargetsLikelihoodCounts) {
  const Tensor target = ints({2, -3});  // the latter is class 0
  EXPECT_EQ(floats_of(nll_loss(log_probability_, target, {.reduction = LossReduction::None})),
            (Floats{3, 4}));
  EXPECT_EQ(floats_of(nll_loss(log_probability_, target, {.reduction = LossReduction::Sum})),
            Floats{7});
  EXPECT_EQ(floats_of(nll_loss(log_probability_, target)), Floats{3.5f});
}

TEST_P(Loss, WeightsDivideTheMean) {
  const Tensor weight = floats(context_, {1, 2, 4});
  EXPECT_EQ(floats_of(nll_loss(log_probability_, ints({2, 0}), {.weight = weight})),
            Floats{(3 * 4 + 4 * 1) / 5.0f});
}

TEST_P(Loss, WhatIsIgnoredCountsNothing) {
  const LossOptions options{.ignore_index = 100};
  EXPECT_EQ(floats_of(nll_loss(log_probability_, ints({100, 1}), options)), Floats{5});
  // An infinite loss of no weight is none.
  const Tensor impossible = floats(context_, {-INFINITY, -2}, {1, 2});
  EXPECT_EQ(
      floats_of(nll_loss(impossible, ints({0}),
                         {.weight = floats(context_, {0, 1}), .reduction = LossReduction::Sum})),
      Floats{0});
}

// Targets of 32 bits are compared as such, with any number that is ignored.
TEST_P(Loss, ShortTargetsAreTargets) {
  const Tensor target = cast(ints({2, -3}), kInt32);
  for (const int64_t ignored : {int64_t{-3}, int64_t{1} << 40, INT64_MIN})
    EXPECT_EQ(floats_of(nll_loss(log_probability_, target,
                                 {.ignore_index = ignored, .reduction = LossReduction::Sum})),
              Floats{ignored == -3 ? 3.f : 7.f});
  EXPECT_EQ(floats_of(nll_loss(log_probability_, cast(ints({2, 1}), kUInt8),
                               {.ignore_index = -254, .reduction = LossReduction::Sum})),
            Floats{8});
}

TEST_P(Loss, OfASoftmaxIsTheCrossEntropy) {
  const Tensor scores = floats(context_, {1, 2, 3, 0, 0, 0}, {2, 3});
  const double first = std::log(std::exp(1.0) + std::exp(2.0) + std::exp(3.0)) - 2;
  EXPECT_NEAR(floats_of(nll_loss(log_softmax(scores, 1), ints({1, 2})))[0],
              (first + std::log(3.0)) / 2, 1e-6);
}

TEST_P(Loss, PicturesHaveATargetForEachPixel) {
  // [batch, classes, pixels]
  const Tensor x = floats(context_, {-1, -2, -3, -4}, {1, 2, 2});
  const int64_t target[] = {1, 0};
  const Tensor classes = from_data(context_, kInt64, {1, 2}, target, 16);
  EXPECT_EQ(floats_of(nll_loss(x, classes, {.reduction = LossReduction::None})), (Floats{3, 2}));
}

TEST_P(Loss, MistakesAreNamed) {
  expect_failure(failure_of([&] { nll_loss(log_probability_, floats(context_, {0, 1})); }),
                 Status::DType, {"float32", "integers"});
  expect_failure(failure_of([&] { nll_loss(floats(context_, {1, 2}), ints({0, 1})); }),
                 Status::Shape, {"targets of shape [2]", "without axis 1"});
  expect_failure(failure_of([&] { nll_loss(log_probability_, ints({0})); }), Status::Shape,
                 {"targets of shape [1]", "without axis 1"});
  expect_failure(failure_of([&] { floats_of(nll_loss(log_probability_, ints({0, 3}))); }),
                 Status::Index);
}

}  // namespace
}  // namespace tiny
