// Reductions over nothing give the identity of their dtype, and sums that wrap.
#include "tensor/reduce.h"

#include <gtest/gtest.h>

#include "tensor/create.h"
#include "tensor/value.h"
#include "tests/reference/reference.h"
#include "tests/support/context.h"

namespace tiny {
namespace {

TEST(Reduce, OverNothingIsTheIdentityOfTheDtype) {
  for (const std::string& device : testing::computing_devices())
    for (const DType dtype : {kInt8, kInt16, kInt32, kInt64, kUInt8, kUInt16, kUInt32, kUInt64,
                              kFloat16, kBFloat16, kFloat32, kFloat64, kBool}) {
      const Ref<Context> context = testing::new_context(device);
      const Tensor nothing = from_data(context, dtype, {3, 0}, nullptr, 0);
      for (const Tensor& t :
           {sum(nothing, {1}), prod(nothing, {1}), max(nothing, {1}), min(nothing, {1})}) {
        const reference::Values want = reference::evaluate(t.node());
        Tensor got = t;
        std::string bytes(static_cast<size_t>(element_count(t) * t.dtype().bytes()), '\xAA');
        read(got, bytes.data(), std::ssize(bytes));
        EXPECT_EQ(reference::difference(want, bytes.data()), "")
            << device << " " << to_string(dtype);
      }
    }
}

TEST(Reduce, ASumInItsDtypeWraps) {
  const Ref<Context> context = testing::new_context("interp");
  const int8_t values[] = {100, 100, -3, 1};
  Tensor out = sum_in_dtype(from_data(context, kInt8, {2, 2}, values, 4), {1});
  EXPECT_EQ(out.dtype(), kInt8);
  int8_t got[2] = {};
  read(out, got, 2);
  EXPECT_EQ(got[0], static_cast<int8_t>(200 - 256));
  EXPECT_EQ(got[1], -2);
}

}  // namespace
}  // namespace tiny
