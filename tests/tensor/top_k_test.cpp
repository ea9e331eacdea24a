// The greatest or lowest elements, in order, with equals and NaN.
#include "tensor/top_k.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tensor/value.h"
#include "tests/support/context.h"
#include "tests/support/failure.h"
#include "tests/support/tensors.h"

namespace tiny {
namespace {

using testing::Floats;
using testing::floats;
using testing::floats_of;

Ints ints_of(Tensor t) {
  Ints out(static_cast<size_t>(element_count(t)));
  read(t, out.data(), std::ssize(out) * 8);
  return out;
}

TEST(TopK, OrdersByValueThenByPlace) {
  for (const char* device : {"cpu", "interp"}) {
    const Ref<Context> context = testing::new_context(device);
    const Tensor a = floats(context, {3, 1, 3, 2, 0, 5}, {2, 3});
    const TopK most = top_k(a, 2, -1, true);
    EXPECT_EQ(floats_of(most.values), (Floats{3, 3, 5, 2}));
    EXPECT_EQ(ints_of(most.indices), (Ints{0, 2, 2, 0}));
    const TopK least = top_k(a, 1, 0, false);
    EXPECT_EQ(floats_of(least.values), (Floats{2, 0, 3}));
    EXPECT_EQ(ints_of(least.indices), (Ints{1, 1, 0}));
    EXPECT_EQ(ints_of(top_k(a, 0, 1, true).indices), Ints{});
  }
}

TEST(TopK, NanIsTheGreatest) {
  const Ref<Context> context = testing::new_context("interp");
  const Tensor a = floats(context, {1, NAN, INFINITY, -1});
  EXPECT_EQ(ints_of(top_k(a, 4, 0, true).indices), (Ints{1, 2, 0, 3}));
  EXPECT_EQ(ints_of(top_k(a, 4, 0, false).indices), (Ints{3, 0, 2, 1}));
}

TEST(TopK, MistakesAreNamed) {
  const Ref<Context> context = testing::new_context("interp");
  const Tensor a = floats(context, {1, 2});
  testing::expect_failure(testing::failure_of([&] { top_k(a, 3, 0, true); }),
                          Status::InvalidArgument, {"k = 3 of 2"});
  testing::expect_failure(testing::failure_of([&] { top_k(a, 1, 1, true); }), Status::Shape);
}

}  // namespace
}  // namespace tiny
