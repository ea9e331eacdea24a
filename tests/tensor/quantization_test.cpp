// Quantized numbers and their products against loops over plain numbers.
#include "tensor/quantization.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

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

class Quantization : public ::testing::TestWithParam<std::string> {
 protected:
  // Numbers that the dtype holds.
  Tensor integers(const Floats& values, const Ints& shape, DType dtype) const {
    return cast(floats(context_, values, shape), dtype);
  }
  static Floats numbers_of(const Tensor& t) { return floats_of(cast(t, kFloat32)); }
  Ref<Context> context_ = testing::new_context(GetParam());
};

INSTANTIATE_TEST_SUITE_P(Devices, Quantization, ::testing::Values("cpu", "interp"));

TEST_P(Quantization, RoundsHalfToEvenAndStopsAtTheEnds) {
  const Tensor x = floats(context_, {-1000, -1, -0.25, 0.25, 0.75, 1.25, 100, 1000});
  QuantizationParameters p{floats(context_, {0.5}), integers({3}, {1}, kUInt8), 0, 0};
  EXPECT_EQ(numbers_of(quantize(x, p, kUInt8)), (Floats{0, 1, 3, 3, 5, 5, 203, 255}));
  p.zero = Tensor();
  EXPECT_EQ(numbers_of(quantize(x, p, kInt8)), (Floats{-128, -2, 0, 0, 2, 2, 127, 127}));
}

TEST_P(Quantization, AScaleForEachElementOfAnAxis) {
  const QuantizationParameters p{floats(context_, {0.5, 2, 4}), integers({0, 1, -1}, {3}, kInt8),
                                 -1, 0};
  const Tensor x = floats(context_, {1, 2, 4, -1, -4, 8}, {2, 3});
  const Tensor q = quantize(x, p, kInt8);
  EXPECT_EQ(q.dtype(), kInt8);
  EXPECT_EQ(numbers_of(q), (Floats{2, 2, 0, -2, -1, 1}));
  EXPECT_EQ(floats_of(dequantize(q, p, kFloat32)), floats_of(x));
}

TEST_P(Quantization, AScaleForEachBlock) {
  QuantizationParameters p{floats(context_, {1, 2, 3, 4}, {2, 2}), Tensor(), 1, 3};
  const Floats q = {1, 1, 1, 1, 1, 2, 2, 2, 2, 2};
  const Tensor x = dequantize(integers(q, {2, 5}, kInt8), p, kFloat32);
  EXPECT_EQ(floats_of(x), (Floats{1, 1, 1, 2, 2, 6, 6, 6, 8, 8}));
  EXPECT_EQ(numbers_of(quantize(x, p, kInt8)), q);
  p.block = 2;
  expect_failure(failure_of([&] { quantize(x, p, kInt8); }), Status::Shape,
                 {"[2, 2]", "blocks of 2", "5 elements"});
}

// What is kept of a zero point is as small as it is: weights of few bits are read with theirs.
TEST_P(Quantization, ZeroPointsOfBlocksAreNegatedBeforeTheyAreSpread) {
  const Tensor zero = integers({1, 2, 3, 4}, {2, 2}, kUInt8);
  const Tensor scale = full(context_, kFloat32, to_shape({2, 2}), 0.5);
  const Tensor bytes = full(context_, kUInt8, to_shape({2, 64}), 3);
  for (const Tensor& y : {dequantize(bytes, {scale, zero, 1, 32}, kFloat32),
                          dequantize_packed(bytes, 8, scale, zero, 32)}) {
    int64_t negated = 0;
    for (const UOp& u : topological({&y.node(), 1}))
      if (u.op() == Op::Neg) negated += product(shape_of(u)).value();
    EXPECT_EQ(negated, 4);
    EXPECT_EQ(testing::floats_of(y)[0], 1);
  }
}

TEST_P(Quantization, NarrowFloatsAreRoundedOnce) {
  const QuantizationParameters p{cast(floats(context_, {0.1f}), kFloat16),
                                 integers({-100}, {1}, kInt8), 0, 0};
  const Tensor x = dequantize(integers({127, 99}, {2}, kInt8), p, kFloat16);
  EXPECT_EQ(x.dtype(), kFloat16);
  const float scale = floats_of(cast(p.scale, kFloat32))[0];
  EXPECT_EQ(numbers_of(x),
            numbers_of(cast(floats(context_, {227 * scale, 199 * scale}), kFloat16)));
}

TEST_P(Quantization, DynamicRangesHoldZero) {
  for (const Floats& values :
       {Floats{0.5, 2, 7}, Floats{-3, -1, -2}, Floats{-1, 0.3f, 4}, Floats{0, 0, 0}}) {
    const Quantized q = quantize_dynamically(floats(context_, values));
    const double high = std::max(0.0f, *std::max_element(values.begin(), values.end()));
    const double low = std::min(0.0f, *std::min_element(values.begin(), values.end()));
    const double scale = (high - low) / 255;
    EXPECT_NEAR(floats_of(q.scale)[0], scale, 1e-7);
    const double zero = scale == 0 ? 0 : std::nearbyint(-low / scale);
    EXPECT_EQ(numbers_of(q.zero)[0], zero);
    const Floats got = numbers_of(q.values);
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_NEAR((double{got[i]} - zero) * scale, double{values[i]}, scale / 2 + 1e-6);
  }
}

TEST_P(Quantization, ProductsOfIntegers) {
  constexpr int64_t kRows = 2, kInner = 3, kColumns = 2;
  const Floats a = {1, 200, 3, 40, 5, 255}, b = {-1, 2, -128, 4, 5, 127};
  const Floats a_zero = {2, 100}, b_zero = {-3, 7};
  Floats want;
  for (int64_t i = 0; i < kRows; ++i)
    for (int64_t j = 0; j < kColumns; ++j) {
      float sum = 0;
      for (int64_t k = 0; k < kInner; ++k)
        sum += (a[static_cast<size_t>(i * kInner + k)] - a_zero[static_cast<size_t>(i)]) *
               (b[static_cast<size_t>(k * kColumns + j)] - b_zero[static_cast<size_t>(j)]);
      want.push_back(sum);
    }
  const Quantized left{integers(a, {kRows, kInner}, kUInt8), floats(context_, {0.5, 0.25}),
                       integers(a_zero, {2}, kUInt8)};
  const Quantized right{integers(b, {kInner, kColumns}, kInt8), floats(context_, {2, 0.125}),
                        integers(b_zero, {2}, kInt8)};
  const Tensor product = matmul_integer(left.values, left.zero, right.values, right.zero);
  EXPECT_EQ(product.dtype(), kInt32);
  EXPECT_EQ(numbers_of(product), want);
  const Tensor y =
      quantized_matmul(left, right, floats(context_, {16}), integers({10}, {1}, kInt8));
  const Floats scales = {0.5 * 2, 0.5 * 0.125, 0.25 * 2, 0.25 * 0.125};
  for (size_t i = 0; i < want.size(); ++i)
    want[i] = std::clamp(std::nearbyint(want[i] * scales[i] / 16) + 10, -128.f, 127.f);
  EXPECT_EQ(y.dtype(), kInt8);
  EXPECT_EQ(numbers_of(y), want);
}

TEST_P(Quantization, MistakesAreNamed) {
  const Tensor x = floats(context_, {1, 2, 3, 4, 5, 6}, {2, 3});
  const auto failure = [&](const QuantizationParameters& p, DType to) {
    return failure_of([&] { quantize(x, p, to); });
  };
  expect_failure(failure({floats(context_, {1, 2}), Tensor(), 1, 0}, kInt8), Status::Shape,
                 {"[2]", "axis 1", "[2, 3]"});
  expect_failure(failure({floats(context_, {1, 2}, {2, 1}), Tensor(), 1, 0}, kInt8), Status::Shape,
                 {"[2, 1]", "blocks of 0"});
  expect_failure(failure({floats(context_, {1, 2, 3}), Tensor(), 2, 0}, kInt8), Status::Shape,
                 {"axis 2"});
  expect_failure(failure({floats(context_, {1}), Tensor(), 0, 0}, kFloat16), Status::DType,
                 {"float16", "integers"});
}

// Each block of x is rounded by its greatest magnitude; what is multiplied then are whole numbers.
TEST_P(Quantization, ProductsWithNumbersOfFewBits) {
  const Floats x = {1, -2, 0.5, 4, 0, 0, 0, 0, 3, 1};  // blocks of 4, of which one is nothing
  // Two columns of three blocks of four numbers of 4 bits, the lower half of a byte first.
  const Floats bytes = {0x10, 0x32, 0x54, 0x76, 0x98, 0xBA, 0x0F, 0xF0, 0x88, 0x88, 0x21, 0x43};
  const Floats numbers = {0,  1, 2, 3,  4, 5, 6, 7, 8, 9, 10, 11,
                          15, 0, 0, 15, 8, 8, 8, 8, 1, 2, 3,  4};
  const Floats scales = {1, 2, 0.5, 0.25, 1, 2}, zeros = {8, 8, 8, 1, 2, 3};
  for (const bool has_zeros : {false, true}) {
    Floats wanted(2);
    for (size_t n = 0; n < 2; ++n)
      for (size_t k = 0; k < x.size(); ++k) {
        const size_t block = n * 3 + k / 4;
        float greatest = 0;
        for (size_t i = k / 4 * 4; i < std::min(x.size(), k / 4 * 4 + 4); ++i)
          greatest = std::max(greatest, std::abs(x[i]));
        const float step = greatest / 127;
        const float rounded = greatest == 0 ? 0 : std::nearbyint(x[k] / step) * step;
        wanted[n] +=
            rounded * (numbers[n * 12 + k] - (has_zeros ? zeros[block] : 8)) * scales[block];
      }
    const Tensor y = matmul_packed(floats(context_, x, {1, 10}), integers(bytes, {2, 3, 2}, kUInt8),
                                   4, floats(context_, scales, {2, 3}),
                                   has_zeros ? floats(context_, zeros, {2, 3}) : Tensor());
    const Floats got = floats_of(y);
    ASSERT_EQ(got.size(), wanted.size());
    for (size_t n = 0; n < 2; ++n) EXPECT_NEAR(got[n], wanted[n], 1e-4);
  }
}

}  // namespace
}  // namespace tiny
