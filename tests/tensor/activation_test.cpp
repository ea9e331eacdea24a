// Activation functions that tiny.h has no name for, against their formulas in double.
#include "tensor/activation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tensor/elementwise.h"
#include "tests/support/context.h"
#include "tests/support/tensors.h"

namespace tiny {
namespace {

using testing::Floats;
using testing::floats;
using testing::floats_of;

struct Formula {
  const char* name;
  Tensor (*function)(const Tensor&);
  double (*want)(double);
};

double hard_sigmoid_of(double x) {
  return std::clamp(x / 6 + 0.5, 0.0, 1.0);
}

const Formula kFormulas[] = {
    {"softsign", softsign, [](double x) { return x / (1 + std::fabs(x)); }},
    {"mish", mish, [](double x) { return x * std::tanh(std::log1p(std::exp(x))); }},
    {"hard_swish", hard_swish, [](double x) { return x * hard_sigmoid_of(x); }},
    {"swish", [](const Tensor& a) { return swish(a, 1.5); },
     [](double x) { return x / (1 + std::exp(-1.5 * x)); }},
    {"celu", [](const Tensor& a) { return celu(a, 2); },
     [](double x) { return x < 0 ? 2 * std::expm1(x / 2) : x; }},
    {"selu", [](const Tensor& a) { return selu(a); },
     [](double x) {
       return 1.0507009873554805 * (x < 0 ? 1.6732632423543772 * std::expm1(x) : x);
     }},
    {"exponential_unit", [](const Tensor& a) { return exponential_unit(a, 3, 0.5); },
     [](double x) { return x < 0 ? 3 * std::expm1(x / 0.5) : x; }},
    {"thresholded_relu", [](const Tensor& a) { return thresholded_relu(a, 0.75); },
     [](double x) { return x > 0.75 ? x : 0; }},
    {"soft_shrink", [](const Tensor& a) { return soft_shrink(a, 1, 0.25); },
     [](double x) { return x < -1  ? x + 0.25
                           : x > 1 ? x - 0.25
                                   : 0; }},
};

TEST(Activation, IsItsFormula) {
  const Floats values = {-30, -3, -1, -0.75f, -0.125f, 0, 0.125f, 0.75f, 1, 2.5f, 30};
  for (const char* device : {"cpu", "interp"}) {
    const Ref<Context> context = testing::new_context(device);
    const Tensor x = floats(context, values);
    for (const Formula& f : kFormulas) {
      const Floats got = floats_of(f.function(x));
      for (size_t i = 0; i < values.size(); ++i)
        EXPECT_NEAR(got[i], f.want(values[i]), 4e-6 * std::max(1.0, std::fabs(f.want(values[i]))))
            << f.name << " of " << values[i] << " on " << device;
    }
  }
}

TEST(Activation, NoNumberStaysNone) {
  const Ref<Context> context = testing::new_context("interp");
  const Tensor x = floats(context, {NAN});
  for (Tensor (*f)(const Tensor&) : {softsign, mish, hard_swish})
    EXPECT_TRUE(std::isnan(floats_of(f(x))[0]));
  EXPECT_TRUE(std::isnan(floats_of(selu(x))[0]));
}

TEST(Activation, SlopesBroadcast) {
  const Ref<Context> context = testing::new_context("interp");
  const Tensor x = floats(context, {-1, 2, -3, -4}, {2, 2});
  EXPECT_EQ(floats_of(prelu(x, floats(context, {0.5f, 2}))), (Floats{-0.5f, 2, -1.5f, -8}));
}

TEST(Activation, IntegersStayWhereTheFunctionIsTheirs) {
  const Ref<Context> context = testing::new_context("interp");
  const int32_t values[] = {-3, -1, 0, 1, 3};
  const Tensor x = from_data(context, kInt32, {5}, values, 20);
  const auto ints = [](Tensor t) {
    EXPECT_EQ(t.dtype(), kInt32);
    std::vector<int32_t> out(5);
    read(t, out.data(), 20);
    return out;
  };
  EXPECT_EQ(ints(soft_shrink(x, 1.5, 1)), (std::vector<int32_t>{-2, 0, 0, 0, 2}));
  EXPECT_EQ(ints(prelu(x, number_int(x, 2))), (std::vector<int32_t>{-6, -2, 0, 1, 3}));
  EXPECT_EQ(softsign(x).dtype(), kFloat32);
}

}  // namespace
}  // namespace tiny
