// Tensors of 8-bit floats: moved as they are, computed as float32.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "ir/fold.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/joining.h"
#include "tensor/reduce.h"
#include "tests/support/context.h"
#include "tests/support/tensors.h"

namespace tiny {
namespace {

using testing::Floats;
using testing::floats;
using testing::floats_of;

const DType kFloat8s[] = {kFloat8E4M3FN, kFloat8E4M3FNUZ, kFloat8E5M2, kFloat8E5M2FNUZ};
using Bytes = std::vector<uint8_t>;

class Float8Tensors : public ::testing::TestWithParam<std::string> {
 protected:
  // Every element of the type.
  Tensor all(DType t) const {
    Bytes bits(256);
    std::iota(bits.begin(), bits.end(), uint8_t{0});
    return from_data(context_, t, {256}, bits.data(), 256);
  }
  static Bytes bits_in(Tensor t) {
    Bytes out(static_cast<size_t>(element_count(t)));
    read(t, out.data(), std::ssize(out));
    return out;
  }
  Ref<Context> context_ = testing::new_context(GetParam());
};

INSTANTIATE_TEST_SUITE_P(Devices, Float8Tensors, ::testing::Values("cpu", "interp"));

TEST_P(Float8Tensors, AreReadAsTheirValuesAndBack) {
  for (const DType t : kFloat8s) {
    const Floats values = floats_of(cast(all(t), kFloat32));
    for (uint64_t bits = 0; bits < 256; ++bits) {
      const double wanted = double_of(t, bits);
      if (std::isnan(wanted))
        EXPECT_TRUE(std::isnan(values[bits])) << to_string(t) << " " << bits;
      else
        EXPECT_EQ(values[bits], wanted) << to_string(t) << " " << bits;
    }
    const Bytes back = bits_in(cast(floats(context_, values), t));
    for (uint64_t bits = 0; bits < 256; ++bits) {
      if (std::isnan(double_of(t, bits))) continue;
      EXPECT_EQ(back[bits], bits) << to_string(t);
    }
  }
}

TEST_P(Float8Tensors, AreMovedBitForBit) {
  for (const DType t : kFloat8s) {
    const Tensor x = all(t), reversed = flip(x, {0});
    const Bytes found = bits_in(concat(std::vector{reversed, x}, 0));
    for (size_t i = 0; i < 256; ++i) {
      EXPECT_EQ(found[i], 255 - i) << to_string(t);
      EXPECT_EQ(found[256 + i], i) << to_string(t);
    }
    const int64_t places[] = {3, 0x80, 0xFF};
    const Tensor index = from_data(context_, kInt64, {3}, places, sizeof places);
    EXPECT_EQ(bits_in(gather(x, index)), (Bytes{3, 0x80, 0xFF})) << to_string(t);
    EXPECT_EQ(bits_in(bitcast(x, kUInt8)), bits_in(x)) << to_string(t);
  }
}

TEST_P(Float8Tensors, SumsAndProductsAreRoundedOnce) {
  for (const DType t : kFloat8s) {
    const Tensor x = cast(floats(context_, {1.5F, -2, 0.25F, 3}), t);
    const Tensor y = cast(floats(context_, {0.5F, 0.5F, 1, -3}), t);
    EXPECT_EQ(add(x, y).dtype(), t);
    EXPECT_EQ(floats_of(cast(add(x, y), kFloat32)), (Floats{2, -1.5F, 1.25F, 0})) << to_string(t);
    EXPECT_EQ(floats_of(cast(mul(x, y), kFloat32)),
              (Floats{0.75F, -1, 0.25F, t.digits() == 4 ? -9.0F : -8.0F}))
        << to_string(t);
    EXPECT_EQ(floats_of(cast(maximum(neg(x), y), kFloat32)), (Floats{0.5F, 2, 1, -3}))
        << to_string(t);
    // In steps of the format the sum would stay at 16 of e4m3, and 8 of e5m2.
    const Tensor ones = full(context_, t, to_shape(Ints{32}), 1);
    EXPECT_EQ(floats_of(cast(sum(ones, {0}), kFloat32)), Floats{32}) << to_string(t);
    EXPECT_EQ(floats_of(cast(max(x, {0}), kFloat32)), Floats{3}) << to_string(t);
    const Tensor none = cast(floats(context_, {}, {0}), t);
    EXPECT_EQ(bits_in(max(none, {0})), Bytes{static_cast<uint8_t>(lowest_bits(t))}) << to_string(t);
  }
}

}  // namespace
}  // namespace tiny
