// Powers by exponents that are known while the graph is built: what they are made of, and values.
#include "tensor/elementwise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tensor/create.h"
#include "tensor/movement.h"
#include "tensor/value.h"
#include "tests/support/context.h"
#include "tests/support/tensors.h"

namespace tiny {
namespace {

using testing::Floats;
using testing::floats;
using testing::floats_of;

bool has_pow(const Tensor& t) {
  const UOp root = t.node();
  for (const UOp& u : topological({&root, 1}))
    if (u.op() == Op::Pow) return true;
  return false;
}

TEST(Power, OfKnownExponentsIsProductsAndRoots) {
  const Floats at = {0.25f, 1.f, 4.f, 2.25f};
  for (const std::string& device : testing::computing_devices()) {
    const Ref<Context> context = testing::new_context(device);
    for (DType t : {kFloat16, kBFloat16, kFloat32, kFloat64}) {
      for (double exponent : {0.0, 1.0, 2.0, 3.0, 4.0, -1.0, -2.0, 0.5, -0.5, 1.5}) {
        const Tensor power =
            pow(cast(floats(context, at), t), full(context, t, Shape{Dim(1)}, exponent));
        EXPECT_EQ(power.dtype(), t);
        // x^1.5 is one for its slope at 0, and becomes a product and a root in kernels.
        EXPECT_EQ(has_pow(power), exponent == 1.5) << to_string(t) << " " << exponent;
        const Floats got = floats_of(cast(power, kFloat32));
        ASSERT_EQ(got.size(), at.size());
        // Of 11 bits, or of the 8 of bfloat16, half of the last.
        const double tolerance = t == kBFloat16 ? 0x1p-8 : t == kFloat16 ? 0x1p-11 : 0x1p-22;
        for (size_t i = 0; i < at.size(); ++i) {
          const double want = std::pow(static_cast<double>(at[i]), exponent);
          EXPECT_NEAR(got[i], want, tolerance * want)
              << device << " " << to_string(t) << " " << at[i] << " to the power of " << exponent;
        }
      }
    }
  }
}

TEST(Power, SeesConstantsThroughConversionsAndBroadcasting) {
  const Ref<Context> context = testing::new_context("interp");
  const Tensor x = floats(context, {1.f, 2.f, -3.f});
  const Tensor three = full(context, kInt64, Shape{Dim(1)}, 3);
  for (const Tensor& exponent : {cast(three, kFloat32), expand(cast(three, kFloat64), {3})}) {
    const Tensor power = pow(x, exponent);
    EXPECT_FALSE(has_pow(power));
    EXPECT_EQ(floats_of(cast(power, kFloat32)), (Floats{1, 8, -27}));
  }
}

TEST(Power, OfIntegersByKnownExponents) {
  for (const std::string& device : testing::computing_devices()) {
    const Ref<Context> context = testing::new_context(device);
    const Tensor x = floats(context, {0.f, 1.f, -1.f, 3.f});
    for (DType t : {kInt8, kInt16, kInt32, kInt64}) {
      const auto power = [&](double n) {
        return floats_of(cast(pow(cast(x, t), full(context, t, Shape{}, n)), kFloat32));
      };
      EXPECT_EQ(power(0), (Floats{1, 1, 1, 1})) << to_string(t);
      EXPECT_EQ(power(3), (Floats{0, 1, -1, 27})) << to_string(t);
      EXPECT_EQ(power(4), (Floats{0, 1, 1, 81})) << to_string(t);
      EXPECT_EQ(power(-1), (Floats{0, 1, -1, 0})) << to_string(t);
      EXPECT_EQ(power(-2), (Floats{0, 1, 1, 0})) << to_string(t);
    }
    // -1 is 255 there, and wraps.
    const Tensor of_bytes = pow(cast(x, kUInt8), Tensor::weak_int(context, -1));
    EXPECT_EQ(floats_of(cast(of_bytes, kFloat32))[3], 171);
  }
}

}  // namespace
}  // namespace tiny
