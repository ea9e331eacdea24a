// Convolutions of small integers against the sums that they stand for.
#include "tensor/quantized_conv.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/context.h"
#include "tests/support/failure.h"
#include "tests/support/tensors.h"

namespace tiny {
namespace {

using testing::expect_failure;
using testing::failure_of;
using testing::floats;

// One channel of five elements, two output channels of three taps.
const uint8_t kInput[] = {3, 200, 17, 128, 90};
const int8_t kWeight[] = {1, -2, 3, 100, 50, -25};
constexpr int64_t kInputZero = 20;
const int8_t kWeightZeros[] = {-1, 4};

int64_t sum_at(int64_t channel, int64_t at) {
  int64_t sum = 0;
  for (int64_t k = 0; k < 3; ++k)
    sum += (kInput[at + k] - kInputZero) * (kWeight[3 * channel + k] - kWeightZeros[channel]);
  return sum;
}

class QuantizedConv : public ::testing::TestWithParam<std::string> {
 protected:
  template <class T>
  Tensor of(DType dtype, const Ints& shape, const T* values, int64_t count) const {
    return from_data(context_, dtype, shape, values, count * static_cast<int64_t>(sizeof(T)));
  }
  Ref<Context> context_ = testing::new_context(GetParam());
  const uint8_t zero_ = kInputZero;
  const Tensor x_ = of(kUInt8, {1, 1, 5}, kInput, 5), x_zero_ = of(kUInt8, {}, &zero_, 1);
  const Tensor weight_ = of(kInt8, {2, 1, 3}, kWeight, 6);
  const Tensor weight_zero_ = of(kInt8, {2}, kWeightZeros, 2);
};

INSTANTIATE_TEST_SUITE_P(Devices, QuantizedConv, ::testing::Values("cpu", "interp"));

TEST_P(QuantizedConv, ZeroPointsAreTakenAway) {
  Tensor out = conv_integer(x_, x_zero_, weight_, weight_zero_, Tensor(), {});
  std::vector<int32_t> got(6);
  read(out, got.data(), 24);
  for (int64_t c = 0; c < 2; ++c)
    for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(got[static_cast<size_t>(3 * c + i)], sum_at(c, i));
  Tensor plain = conv_integer(x_, Tensor(), weight_, Tensor(), Tensor(), {});
  read(plain, got.data(), 24);
  EXPECT_EQ(got[0], 3 - 2 * 200 + 3 * 17);
}

TEST_P(QuantizedConv, TheResultIsScaled) {
  const int32_t bias[] = {50, -700};
  const int8_t zero = 5;
  const float weight_scales[] = {0.5f, 0.125f};
  Tensor out =
      quantized_conv({x_, floats(context_, {0.25f}), x_zero_},
                     {weight_, floats(context_, {0.5f, 0.125f}), weight_zero_},
                     of(kInt32, {2}, bias, 2), floats(context_, {8}), of(kInt8, {}, &zero, 1), {});
  EXPECT_EQ(out.dtype(), kInt8);
  std::vector<int8_t> got(6);
  read(out, got.data(), 6);
  for (int64_t c = 0; c < 2; ++c)
    for (int64_t i = 0; i < 3; ++i) {
      const double real = 0.25 * weight_scales[c] * static_cast<double>(sum_at(c, i) + bias[c]);
      EXPECT_EQ(got[static_cast<size_t>(3 * c + i)],
                std::clamp(std::nearbyint(real / 8) + zero, -128.0, 127.0));
    }
}

TEST_P(QuantizedConv, ChannelsMayBeLast) {
  const Tensor x = of(kUInt8, {1, 5, 1}, kInput, 5);
  const Tensor weight = of(kInt8, {2, 3, 1}, kWeight, 6);
  const int8_t zero = 0;
  Tensor out = quantized_conv({x, floats(context_, {1}), x_zero_},
                              {weight, floats(context_, {1, 0.5f}), weight_zero_}, Tensor(),
                              floats(context_, {1000}), of(kInt8, {}, &zero, 1),
                              {.layout = Layout::ChannelsLast});
  std::vector<int8_t> got(6);
  read(out, got.data(), 6);
  for (int64_t i = 0; i < 3; ++i)
    for (int64_t c = 0; c < 2; ++c)
      EXPECT_EQ(got[static_cast<size_t>(2 * i + c)],
                std::nearbyint(static_cast<double>(sum_at(c, i)) / (c == 0 ? 1000 : 2000)));
}

TEST_P(QuantizedConv, MistakesAreNamed) {
  expect_failure(
      failure_of([&] { conv_integer(x_, weight_zero_, weight_, Tensor(), Tensor(), {}); }),
      Status::Shape, {"zero point of the input of shape [2]", "one number"});
  expect_failure(failure_of([&] { conv_integer(x_, Tensor(), weight_, weight_, Tensor(), {}); }),
                 Status::Shape, {"[2, 1, 3]", "one number or [2]"});
}

}  // namespace
}  // namespace tiny
