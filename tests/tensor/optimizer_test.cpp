// Steps of optimisers against the same steps in double.
#include "tensor/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/context.h"
#include "tests/support/tensors.h"

namespace tiny {
namespace {

using testing::floats;
using testing::floats_of;

constexpr double kRate = 0.1;
constexpr double kDecay = 0.01;
constexpr double kEpsilon = 1e-3;

// A value that is moved by the gradient of its cube, three steps.
class Optimizer : public ::testing::TestWithParam<std::string> {
 protected:
  Tensor one(double value) const { return floats(context_, {static_cast<float>(value)}); }
  Tensor count(int64_t steps) const { return from_data(context_, kInt64, {}, &steps, 8); }
  Tensor rate() const { return reshape(one(kRate), {}); }
  static void expect_near(const Tensor& got, double want) {
    EXPECT_NEAR(floats_of(got)[0], want, 1e-5);
  }
  static double gradient(double x) { return 3 * x * x; }
  Ref<Context> context_ = testing::new_context(GetParam());
};

INSTANTIATE_TEST_SUITE_P(Devices, Optimizer, ::testing::Values("cpu", "interp"));

TEST_P(Optimizer, AdagradDividesByAllThatWas) {
  double x = 2, h = 0.5;
  Adagrad state{one(x), one(h)};
  for (int64_t t = 0; t < 3; ++t) {
    state = adagrad(state, one(gradient(x)), rate(), count(t),
                    {.decay_factor = 0.5, .epsilon = kEpsilon, .weight_decay = kDecay});
    const double g = gradient(x) + kDecay * x;
    h += g * g;
    x -= kRate / (1 + 0.5 * static_cast<double>(t)) * g / (std::sqrt(h) + kEpsilon);
    expect_near(state.value, x);
    EXPECT_NEAR(floats_of(state.squares)[0] / h, 1, 1e-5);
  }
}

TEST_P(Optimizer, AdamCorrectsItsMeans) {
  double x = 2, v = 0, h = 0;
  const double a = 0.9, b = 0.99;
  Adam state{one(x), one(v), one(h)};
  for (int64_t t = 0; t < 3; ++t) {
    state = adam(state, one(gradient(x)), rate(), count(t),
                 {.alpha = a, .beta = b, .epsilon = kEpsilon, .weight_decay_after = kDecay});
    const double g = gradient(x), n = static_cast<double>(t);
    v = a * v + (1 - a) * g;
    h = b * h + (1 - b) * g * g;
    const double step =
        t == 0 ? kRate : kRate * std::sqrt(1 - std::pow(b, n)) / (1 - std::pow(a, n));
    x = (x - step * v / (std::sqrt(h) + kEpsilon)) * (1 - kDecay);
    expect_near(state.value, x);
    expect_near(state.mean, v);
  }
}

TEST_P(Optimizer, MomentumStays) {
  for (const bool nesterov : {false, true}) {
    double x = 1, v = 0.25;
    const double a = 0.5, beta = 0.75;
    Momentum state{one(x), one(v)};
    for (int64_t t = 0; t < 3; ++t) {
      state = momentum(state, one(gradient(x)), rate(), count(t),
                       {.alpha = a, .beta = beta, .weight_decay = kDecay, .nesterov = nesterov});
      const double g = gradient(x) + kDecay * x;
      v = a * v + (t == 0 ? 1 : beta) * g;
      x -= kRate * (nesterov ? g + a * v : v);
      expect_near(state.value, x);
      expect_near(state.momentum, v);
    }
  }
}

}  // namespace
}  // namespace tiny
