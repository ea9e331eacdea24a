// Elements written to named places: which writer stays, what is folded, what is out of range.
#include "tensor/scatter.h"

#include <gtest/gtest.h>

#include "tensor/create.h"
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

class Scatter : public ::testing::TestWithParam<std::string> {
 protected:
  Tensor ints(const Ints& values, const Ints& shape) const {
    return from_data(context_, kInt64, shape, values.data(), std::ssize(values) * 8);
  }
  Ref<Context> context_ = testing::new_context(GetParam());
};

INSTANTIATE_TEST_SUITE_P(Devices, Scatter, ::testing::Values("cpu", "interp"));

TEST_P(Scatter, TheLastWriterStays) {
  const Tensor data = floats(context_, {1, 2, 3, 4});
  const Tensor updates = floats(context_, {10, 20, 30});
  const Tensor places = ints({1, -1, 1}, {3});
  EXPECT_EQ(floats_of(scatter_elements(data, places, updates, 0)), (Floats{1, 30, 3, 20}));
  EXPECT_EQ(floats_of(scatter_elements(data, places, updates, 0, Fold::Add)),
            (Floats{1, 42, 3, 24}));
  EXPECT_EQ(floats_of(scatter_elements(data, places, updates, 0, Fold::Mul)),
            (Floats{1, 600, 3, 80}));
  EXPECT_EQ(floats_of(scatter_elements(data, places, updates, 0, Fold::Min)), (Floats{1, 2, 3, 4}));
  EXPECT_EQ(floats_of(scatter_elements(data, places, updates, 0, Fold::Max)),
            (Floats{1, 30, 3, 20}));
}

TEST_P(Scatter, UpdatesMayBeShorterThanTheData) {
  const Tensor data = floats(context_, {1, 2, 3, 4, 5, 6}, {2, 3});
  const Tensor out = scatter_elements(data, ints({2}, {1, 1}), floats(context_, {9}, {1, 1}), -1);
  EXPECT_EQ(floats_of(out), (Floats{1, 2, 9, 4, 5, 6}));
  expect_failure(failure_of([&] {
                   scatter_elements(data, ints({0}, {1, 1}), floats(context_, {9, 9}, {1, 2}), 1);
                 }),
                 Status::Shape, {"[1, 1]", "[1, 2]"});
  expect_failure(failure_of([&] {
                   scatter_elements(data, ints({0, 0, 0}, {3, 1}),
                                    floats(context_, {9, 9, 9}, {3, 1}), 1);
                 }),
                 Status::Shape, {"[3, 1]", "[2, 3]"});
}

TEST_P(Scatter, RowsByCoordinates) {
  const Tensor data = floats(context_, Floats(8, 0), {2, 2, 2});
  const Tensor out =
      scatter_nd(data, ints({1, 0, 0, -1}, {2, 2}), floats(context_, {1, 2, 3, 4}, {2, 2}));
  EXPECT_EQ(floats_of(out), (Floats{0, 0, 3, 4, 1, 2, 0, 0}));
  Tensor wrong = scatter_nd(data, ints({2}, {1, 1}), floats(context_, Floats(4, 1), {1, 2, 2}));
  expect_failure(failure_of([&] { floats_of(wrong); }), Status::Index);
}

TEST_P(Scatter, FlatPlacesAndSlices) {
  EXPECT_EQ(floats_of(scatter_flat(floats(context_, {7, 8}), ints({3, 0}, {2}), {2, 2})),
            (Floats{8, 0, 0, 7}));
  const Tensor data = floats(context_, Floats(8, 0), {2, 4});
  const Tensor update = floats(context_, {1, 2, 3, 4}, {2, 2});
  const Tensor start = ints({3, 1}, {2});
  EXPECT_EQ(floats_of(scatter_slices(data, update, start, 1, true)),
            (Floats{2, 0, 0, 1, 0, 3, 4, 0}));
  EXPECT_EQ(floats_of(scatter_slices(data, update, start, 1, false)),
            (Floats{0, 0, 0, 1, 0, 3, 4, 0}));
}

}  // namespace
}  // namespace tiny
