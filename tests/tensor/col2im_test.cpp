// Columns added to the places that they were taken from.
#include "tensor/col2im.h"

#include <gtest/gtest.h>

#include "tests/support/context.h"
#include "tests/support/failure.h"
#include "tests/support/tensors.h"
#include "tests/tensor/arrays.h"

namespace tiny {
namespace {

using testing::Array;
using testing::expect_failure;
using testing::failure_of;
using testing::Floats;
using testing::floats;
using testing::floats_of;

// Of one batch and one channel: block (i, j) holds the elements that a window there takes.
Floats put_back(const Array& columns, const Ints& sizes, const Window& w) {
  Ints counts;
  for (size_t a = 0; a < 2; ++a)
    counts.push_back(
        (sizes[a] + w.before[a] + w.after[a] - w.dilations[a] * (w.kernel[a] - 1) - 1) /
            w.strides[a] +
        1);
  Floats out(static_cast<size_t>(sizes[0] * sizes[1]));
  testing::for_each_index({w.kernel[0], w.kernel[1], counts[0], counts[1]}, [&](const Ints& i) {
    const int64_t y = i[2] * w.strides[0] + i[0] * w.dilations[0] - w.before[0];
    const int64_t x = i[3] * w.strides[1] + i[1] * w.dilations[1] - w.before[1];
    if (y < 0 || y >= sizes[0] || x < 0 || x >= sizes[1]) return;
    out[static_cast<size_t>(y * sizes[1] + x)] +=
        static_cast<float>(columns.at({0, i[0] * w.kernel[1] + i[1], i[2] * counts[1] + i[3]}));
  });
  return out;
}

TEST(Col2im, OverlapsAreSummed) {
  const Window windows[] = {
      {.strides = {1, 1}, .dilations = {1, 1}, .before = {0, 0}, .after = {0, 0}, .kernel = {2, 2}},
      {.strides = {2, 1},
       .dilations = {1, 2},
       .before = {1, 0},
       .after = {0, 2},
       .kernel = {2, 3}}};
  const int64_t blocks[] = {4 * 3, 3 * 2};
  const Ints sizes{5, 4};
  for (const char* device : {"cpu", "interp"}) {
    const Ref<Context> context = testing::new_context(device);
    for (size_t k = 0; k < 2; ++k) {
      const Window& w = windows[k];
      const Array columns =
          testing::generate({1, w.kernel[0] * w.kernel[1], blocks[k]},
                            [](const Ints& i) { return static_cast<double>(7 * i[1] + i[2] % 5); });
      const Floats values(columns.values.begin(), columns.values.end());
      EXPECT_EQ(floats_of(col2im(floats(context, values, columns.shape), sizes, w)),
                put_back(columns, sizes, w))
          << device << " " << k;
    }
  }
}

TEST(Col2im, ListsMayBeLeftOut) {
  const Ref<Context> context = testing::new_context("interp");
  const Tensor x = floats(context, {1, 2, 3, 4}, {1, 2, 2});
  EXPECT_EQ(floats_of(col2im(x, {3}, {.kernel = {2}})), (Floats{1, 5, 4}));
  // Two channels of blocks of one.
  EXPECT_EQ(const_dims(col2im(x, {2}, {.kernel = {1}}).shape()), (Ints{1, 2, 2}));
}

TEST(Col2im, MistakesAreNamed) {
  const Ref<Context> context = testing::new_context("interp");
  const Tensor x = floats(context, {1, 2, 3, 4}, {1, 2, 2});
  expect_failure(failure_of([&] { col2im(x, {4}, {.kernel = {2}}); }), Status::Shape,
                 {"[1, 2, 2]", "multiple of 2, 3]"});
  expect_failure(failure_of([&] { col2im(x, {1}, {.kernel = {2}}); }), Status::InvalidArgument,
                 {"[2]", "does not fit"});
  expect_failure(failure_of([&] { col2im(x, {3, 3}, {.kernel = {2}}); }), Status::InvalidArgument,
                 {"[3, 3]", "[2]"});
  expect_failure(failure_of([&] { col2im(x, {0}, {.kernel = {2}}); }), Status::InvalidArgument,
                 {"[0]"});
  expect_failure(
      failure_of([&] { col2im(x, {3}, {.kernel = {2}, .padding = Padding::SameUpper}); }),
      Status::InvalidArgument, {"explicit padding"});
}

}  // namespace
}  // namespace tiny
