// Gradients are clipped and unscaled as PyTorch does it.
#include "nn/gradients.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/value.h"
#include "tests/support/context.h"
#include "tests/support/failure.h"
#include "tests/support/tensors.h"

namespace tiny {
namespace {

using testing::Floats;

class GradientsTest : public ::testing::Test {
 protected:
  Tensor make(const Floats& values) { return testing::floats(context_, values, {}); }
  static Floats get(const Tensor& t) { return testing::floats_of(t); }

  const Ref<Context> context_ = testing::new_context("cpu");
};

TEST_F(GradientsTest, AreClippedTogether) {
  const std::vector<Tensor> gradients{make({3, 0}), Tensor(), make({4})};
  const Tensor norm = gradient_norm(gradients);
  EXPECT_EQ(get(norm), Floats{5});
  const std::vector<Tensor> halved = clip_by_norm(gradients, norm, 2.5);
  EXPECT_NEAR(get(halved[0])[0], 1.5, 1e-6);
  EXPECT_FALSE(halved[1]);
  EXPECT_NEAR(get(halved[2])[0], 2, 1e-6);
  EXPECT_EQ(get(clip_by_norm(gradients, norm, 10)[2]), Floats{4});
  EXPECT_EQ(get(clip_by_value(gradients, 3.5)[2]), Floats{3.5});
  testing::expect_failure(testing::failure_of([&] { clip_by_norm(gradients, norm, 0); }),
                          Status::InvalidArgument, {"positive"});
}

TEST_F(GradientsTest, AreUnscaledAndTheFactorAdapts) {
  LossScaler scaler(context_, 8, 2);
  EXPECT_EQ(get(scaler.scaled(make({2}))), Floats{16});
  const auto step = [&](float value) {
    const std::vector<Tensor> gradients{make({value, 16}), Tensor()};
    const LossScaler::Unscaled made = scaler.unscale(gradients);
    Tensor skip = cast(made.skip, kFloat32), factor = scaler.factor();
    Tensor* const both[] = {&skip, &factor};
    realize(both);
    EXPECT_FALSE(made.gradients[1]);
    return Floats{get(made.gradients[0])[1], get(skip)[0], get(factor)[0]};
  };
  EXPECT_EQ(step(1), (Floats{2, 0, 8}));
  EXPECT_EQ(step(1), (Floats{2, 0, 16}));  // two good steps
  EXPECT_EQ(step(INFINITY), (Floats{1, 1, 8}));
  EXPECT_EQ(step(NAN), (Floats{2, 1, 4}));
  EXPECT_EQ(step(1), (Floats{4, 0, 4}));
}

// What 16 bits would round to 0, or to infinity.
TEST_F(GradientsTest, ScaledAndUnscaledValuesHaveTheirOwnBits) {
  LossScaler scaler(context_, 65536, 2);
  const Tensor scaled = scaler.scaled(cast(make({4}), kFloat16));
  EXPECT_EQ(scaled.dtype(), kFloat32);
  EXPECT_EQ(get(scaled), Floats{262144});
  const std::vector<Tensor> gradients{cast(make({0.0078125F}), kFloat16)};
  const LossScaler::Unscaled made = scaler.unscale(gradients);
  EXPECT_EQ(made.gradients[0].dtype(), kFloat32);
  EXPECT_EQ(get(made.gradients[0]), Floats{0x1p-23F});
  testing::expect_failure(testing::failure_of([&] { scaler.scaled(cast(make({4}), kInt32)); }),
                          Status::DType, {"int32", "wanted floats"});
}

// However many steps fail.
TEST_F(GradientsTest, TheFactorStaysANumber) {
  LossScaler scaler(context_, 1, 1);
  const auto factor_after = [&](float gradient) {
    for (int step = 0; step < 140; ++step) {
      const std::vector<Tensor> gradients{make({gradient})};
      scaler.unscale(gradients);
      Tensor factor = scaler.factor();
      Tensor* const one[] = {&factor};
      realize(one);
    }
    return get(scaler.factor())[0];
  };
  EXPECT_EQ(factor_after(NAN), 0x1p-126F);
  EXPECT_EQ(factor_after(1), 0x1p+14F);
  EXPECT_EQ(factor_after(1), 0x1p+126F);
}

}  // namespace
}  // namespace tiny
