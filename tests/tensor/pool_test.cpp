// Where the greatest elements of windows lie, in all of the input.
#include <gtest/gtest.h>

#include "tensor/window.h"
#include "tests/support/context.h"
#include "tests/support/failure.h"
#include "tests/support/tensors.h"

namespace tiny {
namespace {

using testing::expect_failure;
using testing::failure_of;
using testing::floats;

Ints ints_of(Tensor t) {
  Ints out(static_cast<size_t>(element_count(t)));
  read(t, out.data(), std::ssize(out) * 8);
  return out;
}

TEST(Pool, PositionsAreOfTheWholeInput) {
  const Window window{.strides = {2, 2}, .kernel = {2, 2}};
  for (const char* device : {"cpu", "interp"}) {
    const Ref<Context> context = testing::new_context(device);
    // Two channels of 2 rows by 4 columns.
    const Tensor x =
        floats(context, {0, 1, 9, 0, 8, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 6}, {1, 2, 2, 4});
    EXPECT_EQ(ints_of(max_pool_indices(x, window)), (Ints{4, 2, 1, 7}));
    EXPECT_EQ(ints_of(max_pool_positions(x, window)), (Ints{4, 2, 8 + 1, 8 + 7}));
    // Row r and column k are place k * 2 + r.
    EXPECT_EQ(ints_of(max_pool_positions(x, window, true)), (Ints{1, 4, 8 + 2, 8 + 7}));
  }
}

TEST(Pool, PositionsWantChannelsFirst) {
  const Ref<Context> context = testing::new_context("interp");
  const Tensor x = floats(context, {1, 2, 3, 4}, {1, 4, 1});
  const Window window{.kernel = {2}, .layout = Layout::ChannelsLast};
  expect_failure(failure_of([&] { max_pool_positions(x, window); }), Status::InvalidArgument,
                 {"channels are first"});
}

}  // namespace
}  // namespace tiny
