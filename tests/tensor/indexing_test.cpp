// Elements of an axis that are named while the graph is built.
#include "tensor/indexing.h"

#include <gtest/gtest.h>

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

TEST(IndexSelect, TakesElementsInTheirOrder) {
  for (const char* device : {"cpu", "interp"}) {
    const Ref<Context> context = testing::new_context(device);
    const Tensor a = floats(context, {1, 2, 3, 4, 5, 6}, {2, 3});
    EXPECT_EQ(floats_of(index_select(a, {2, 0, 2, 2}, -1)), (Floats{3, 1, 3, 3, 6, 4, 6, 6}));
    EXPECT_EQ(floats_of(index_select(a, {1}, 0)), (Floats{4, 5, 6}));
    EXPECT_EQ(const_dims(index_select(a, {}, 1).shape()), (Ints{2, 0}));
  }
}

TEST(IndexSelect, MistakesAreNamed) {
  const Ref<Context> context = testing::new_context("interp");
  const Tensor a = floats(context, {1, 2, 3, 4, 5, 6}, {2, 3});
  for (int64_t wrong : {-1, 3})
    expect_failure(failure_of([&] { index_select(a, {0, wrong}, 1); }), Status::InvalidArgument,
                   {"axis 1, which has 3"});
  expect_failure(failure_of([&] { index_select(a, {0}, 2); }), Status::Shape, {"axis 2"});
}

}  // namespace
}  // namespace tiny
