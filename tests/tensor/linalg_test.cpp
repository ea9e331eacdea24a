// Determinants and inverses against numbers worked out by hand, and against what they mean.
#include "tensor/linalg.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tensor/matmul.h"
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

class Matrices : public ::testing::Test {
 protected:
  Ref<Context> context_ = testing::new_context("interp");
};

TEST_F(Matrices, HaveDeterminants) {
  // The second needs its rows swapped, the third has none that is no multiple.
  const Tensor x = floats(context_, {2, 1, 1, 3, 0, 2, 3, 0, 1, 2, 2, 4}, {3, 2, 2});
  EXPECT_EQ(floats_of(det(x)), (Floats{5, -6, 0}));
  EXPECT_EQ(floats_of(det(floats(context_, {-4}, {1, 1}))), Floats{-4});
}

TEST_F(Matrices, TimesTheirInversesAreOnes) {
  Floats values;
  for (int i = 0; i < 2 * 36; ++i) values.push_back(std::sin(static_cast<float>(3 * i * i + 1)));
  const Tensor x = floats(context_, values, {2, 6, 6});
  const Floats one = floats_of(matmul(x, inverse(x)));
  for (size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(one[i], i % 36 % 7 == 0 ? 1 : 0, 1e-4) << i;
}

TEST_F(Matrices, ThatAreNotSquareAreRefused) {
  const Tensor x = floats(context_, {1, 2}, {1, 2});
  expect_failure(failure_of([&] { det(x); }), Status::Shape, {"det", "[1, 2]", "square"});
  expect_failure(failure_of([&] { inverse(x); }), Status::Shape, {"inverse", "square"});
}

}  // namespace
}  // namespace tiny
