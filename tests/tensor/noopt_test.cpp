// Without optimisations a matrix product, a softmax and a convolution are still one kernel each,
// and right: joining is the scheduler's work, and kernels mean the same under every option.
#include <gtest/gtest.h>

#include <cmath>

#include "tensor/activation.h"
#include "tensor/elementwise.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"
#include "tensor/strides.h"
#include "tests/support/context.h"
#include "tests/support/tensors.h"

namespace tiny {
namespace {

using testing::Floats;

class Noopt : public ::testing::TestWithParam<std::string> {
 protected:
  Noopt() {
    Flags flags = testing::flags_for(GetParam());
    flags.noopt = 1;
    context_ = make_ref<Context>(flags);
  }

  Floats numbers(int64_t count, int step) {
    Floats out;
    for (int64_t i = 0; i < count; ++i) out.push_back(static_cast<float>((i * step) % 17 - 8) / 8);
    return out;
  }

  // The elements; computing them took one kernel.
  Floats in_one_kernel(const Tensor& t) {
    const int64_t before = context_->device().counts().launches.load();
    Floats out = testing::floats_of(t);
    EXPECT_EQ(context_->device().counts().launches.load() - before, 1);
    return out;
  }

  static void expect_near(const Floats& got, const std::vector<double>& want) {
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-5) << i;
  }

  Ref<Context> context_;
};

TEST_P(Noopt, SoftmaxIsOneKernel) {
  constexpr int64_t kRows = 5, kColumns = 37;
  const Floats x = numbers(kRows * kColumns, 5);
  std::vector<double> want;
  for (int64_t r = 0; r < kRows; ++r) {
    double total = 0;
    for (int64_t c = 0; c < kColumns; ++c) total += std::exp(x[size_t(r * kColumns + c)]);
    for (int64_t c = 0; c < kColumns; ++c)
      want.push_back(std::exp(x[size_t(r * kColumns + c)]) / total);
  }
  expect_near(in_one_kernel(softmax(testing::floats(context_, x, {kRows, kColumns}), 1)), want);
}

TEST_P(Noopt, AMatrixProductIsOneKernel) {
  constexpr int64_t kM = 7, kN = 9, kK = 33;
  const Floats a = numbers(kM * kK, 5), b = numbers(kK * kN, 3);
  std::vector<double> want;
  for (int64_t m = 0; m < kM; ++m)
    for (int64_t n = 0; n < kN; ++n) {
      double sum = 0;
      for (int64_t k = 0; k < kK; ++k) sum += double{a[size_t(m * kK + k)]} * b[size_t(k * kN + n)];
      want.push_back(sum);
    }
  expect_near(in_one_kernel(matmul(testing::floats(context_, a, {kM, kK}),
                                   testing::floats(context_, b, {kK, kN}))),
              want);
}

// Windows as a view with overlapping strides, times the weights, summed.
TEST_P(Noopt, AConvolutionOfViewsIsOneKernel) {
  constexpr int64_t kSize = 9, kWindow = 3, kOut = kSize - kWindow + 1, kChannels = 4;
  const Floats x = numbers(kSize * kSize, 5), w = numbers(kChannels * kWindow * kWindow, 3);
  std::vector<double> want;
  for (int64_t c = 0; c < kChannels; ++c)
    for (int64_t i = 0; i < kOut * kOut; ++i) {
      double sum = 0;
      for (int64_t k = 0; k < kWindow * kWindow; ++k)
        sum += double{x[size_t((i / kOut + k / kWindow) * kSize + i % kOut + k % kWindow)]} *
               w[size_t(c * kWindow * kWindow + k)];
      want.push_back(sum);
    }
  const Shape windows = to_shape({kChannels, kOut, kOut, kWindow, kWindow});
  const Tensor seen =
      as_strided(testing::floats(context_, x, {kSize, kSize}),
                 {kChannels, kOut, kOut, kWindow, kWindow}, {0, kSize, 1, kSize, 1}, 0);
  const Tensor weights =
      expand(reshape(testing::floats(context_, w), to_shape({kChannels, 1, 1, kWindow, kWindow})),
             windows);
  expect_near(in_one_kernel(sum(mul(seen, weights), {3, 4})), want);
}

INSTANTIATE_TEST_SUITE_P(On, Noopt, ::testing::ValuesIn(testing::computing_devices()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tiny
