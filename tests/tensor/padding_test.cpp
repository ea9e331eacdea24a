// Pads of every mode against numpy.pad's definition, and what they refuse.
#include "tensor/padding.h"

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

class Padded : public ::testing::TestWithParam<std::string> {
 protected:
  Floats row(int64_t before, int64_t after, PadMode mode) const {
    return floats_of(pad(floats(context_, {1, 2, 3}), {before}, {after}, mode));
  }
  Ref<Context> context_ = testing::new_context(GetParam());
};

INSTANTIATE_TEST_SUITE_P(Devices, Padded, ::testing::Values("cpu", "interp"));

TEST_P(Padded, EveryModeHasItsElements) {
  EXPECT_EQ(row(2, 3, PadMode::Constant), (Floats{0, 0, 1, 2, 3, 0, 0, 0}));
  EXPECT_EQ(row(2, 3, PadMode::Edge), (Floats{1, 1, 1, 2, 3, 3, 3, 3}));
  // Further than the axis is long: it goes on.
  EXPECT_EQ(row(4, 5, PadMode::Reflect), (Floats{1, 2, 3, 2, 1, 2, 3, 2, 1, 2, 3, 2}));
  EXPECT_EQ(row(4, 5, PadMode::Wrap), (Floats{3, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2}));
  for (PadMode mode : {PadMode::Constant, PadMode::Reflect, PadMode::Edge, PadMode::Wrap})
    EXPECT_EQ(row(-1, -1, mode), Floats{2});
}

TEST_P(Padded, WhatIsTakenAwayIsNotRepeated) {
  EXPECT_EQ(row(2, -1, PadMode::Wrap), (Floats{1, 2, 1, 2}));
  EXPECT_EQ(row(-2, 2, PadMode::Wrap), (Floats{3, 3, 3}));
  EXPECT_EQ(row(3, -1, PadMode::Reflect), (Floats{2, 1, 2, 1, 2}));
  EXPECT_EQ(row(-1, 2, PadMode::Edge), (Floats{2, 3, 3, 3}));
  EXPECT_EQ(row(-3, 0, PadMode::Wrap), Floats{});
}

TEST_P(Padded, AxesFollowEachOther) {
  const Tensor a = floats(context_, {1, 2, 3, 4}, {2, 2});
  EXPECT_EQ(floats_of(pad(a, {1, 0}, {0, 1}, PadMode::Wrap)), (Floats{3, 4, 3, 1, 2, 1, 3, 4, 3}));
  EXPECT_EQ(floats_of(pad(floats(context_, {7}), {1}, {2}, PadMode::Reflect)),
            (Floats{7, 7, 7, 7}));
}

TEST_P(Padded, TheValueTakesTheDtype) {
  const int8_t values[] = {5, 6};
  const Tensor a = from_data(context_, kInt8, {2}, values, 2);
  Tensor out = pad(a, {1}, {1}, PadMode::Constant, floats(context_, {2.75f}));
  std::vector<int8_t> got(4);
  read(out, got.data(), 4);
  EXPECT_EQ(got, (std::vector<int8_t>{2, 5, 6, 2}));
}

TEST_P(Padded, TheMiddleStays) {
  const Tensor a = floats(context_, {1, 2, 3, 4, 5});
  EXPECT_EQ(floats_of(center_crop_pad(a, {0}, {2})), (Floats{2, 3}));
  EXPECT_EQ(floats_of(center_crop_pad(a, {0}, {3})), (Floats{2, 3, 4}));
  EXPECT_EQ(floats_of(center_crop_pad(a, {-1}, {8})), (Floats{0, 1, 2, 3, 4, 5, 0, 0}));
}

TEST(Padding, MistakesAreNamed) {
  const Ref<Context> context = testing::new_context("interp");
  const Tensor a = floats(context, {1, 2});
  expect_failure(failure_of([&] { pad(a, {1, 1}, {1, 1}, PadMode::Edge); }), Status::Shape,
                 {"[1, 1]", "every axis"});
  expect_failure(failure_of([&] { pad(a, {-2}, {-1}, PadMode::Wrap); }), Status::Shape,
                 {"[-2]", "[-1]", "take away more"});
  expect_failure(failure_of([&] { pad(a, {-2}, {1}, PadMode::Wrap); }), Status::Shape,
                 {"[-2]", "[1]", "nothing of axis 0"});
  expect_failure(failure_of([&] { pad(a, {INT64_MIN}, {INT64_MAX}, PadMode::Wrap); }),
                 Status::Limit, {"pad"});
  const Tensor none = floats(context, {}, {0});
  expect_failure(failure_of([&] { pad(none, {1}, {0}, PadMode::Reflect); }), Status::Shape,
                 {"no elements"});
  expect_failure(failure_of([&] { center_crop_pad(a, {0}, {-1}); }), Status::InvalidArgument,
                 {"size is -1"});
  expect_failure(failure_of([&] { center_crop_pad(a, {0}, {1, 1}); }), Status::InvalidArgument,
                 {"2 sizes for 1 axes"});
}

TEST(Padding, TablesCountAgainstTheLimit) {
  Flags flags = testing::flags_for("interp");
  flags.memory_limit = 1'000'000;
  const Ref<Context> context = make_ref<Context>(flags);
  const Tensor a = floats(context, {1, 2});
  expect_failure(failure_of([&] { pad(a, {1 << 20}, {0}, PadMode::Edge); }), Status::Limit);
}

}  // namespace
}  // namespace tiny
