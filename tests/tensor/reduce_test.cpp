// Reductions over nothing give the identity of their dtype.
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

}  // namespace
}  // namespace tiny
