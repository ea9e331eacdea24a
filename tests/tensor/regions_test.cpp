// Regions of pictures whose pixels are a ramp, so that what is between them is known.
#include "tensor/regions.h"

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

class Regions : public ::testing::Test {
 protected:
  // Two pictures of 4 x 4 pixels that are 10 * row + column, the second negative.
  Tensor pictures() const {
    Floats values;
    for (int sign : {1, -1})
      for (int i = 0; i < 16; ++i)
        values.push_back(static_cast<float>(sign * (10 * (i / 4) + i % 4)));
    return floats(context_, values, {2, 1, 4, 4});
  }
  Tensor batch(const Ints& values) const {
    return from_data(context_, kInt64, {std::ssize(values)}, values.data(), std::ssize(values) * 8);
  }
  Ref<Context> context_ = testing::new_context("interp");
};

TEST_F(Regions, AreAlignedToPlacesBetweenPixels) {
  const Tensor region = floats(context_, {0, 0, 4, 4, 1, 1, 3, 2}, {2, 4});
  const RoiAlignOptions options{.size = {1, 2}, .sampling = 2};
  // The centres of the first region's parts are (1.5, 0.5) and (1.5, 2.5), of the second's (1, 1)
  // and (1, 2).
  EXPECT_EQ(floats_of(roi_align(pictures(), region, batch({0, 1}), options)),
            (Floats{15.5, 17.5, -11, -12}));
  expect_failure(failure_of([&] { roi_align(pictures(), region, batch({0}), options); }),
                 Status::Shape, {"[2, 4]", "[1]"});
}

TEST_F(Regions, HaveTheirGreatestPixels) {
  const Tensor region = floats(context_, {0, 0, 0, 3, 3, 1, 1, 1, 2, 2}, {2, 5});
  EXPECT_EQ(floats_of(max_roi_pool(pictures(), region, {2, 2}, 1)),
            (Floats{11, 13, 31, 33, -11, -12, -21, -22}));
}

TEST_F(Regions, AreCroppedAndResized) {
  const Tensor region = floats(context_, {0, 0, 1, 1, 0.5, 0, 2, 1}, {2, 4});
  EXPECT_EQ(floats_of(crop_and_resize(pictures(), region, batch({0, 0}), {2, 2}, false, -5)),
            (Floats{0, 3, 30, 33, 15, 18, -5, -5}));
}

TEST_F(Regions, OfTapsThatMoveAreConvolved) {
  // One tap, which sees the pixel half a row further down and one column to the right.
  Floats moves(2 * 16, 0.5F);
  for (size_t i = 16; i < 32; ++i) moves[i] = 1;
  const Tensor x =
      floats(context_, {0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23, 30, 31, 32, 33}, {1, 1, 4, 4});
  const Tensor y =
      deform_conv(x, floats(context_, {2}, {1, 1, 1, 1}), floats(context_, moves, {1, 2, 4, 4}),
                  floats(context_, {1}), Tensor(), {});
  EXPECT_EQ(floats_of(y), (Floats{13, 15, 17, 1, 33, 35, 37, 1, 53, 55, 57, 1, 32, 33, 34, 1}));
  expect_failure(failure_of([&] {
                   deform_conv(x, floats(context_, {2}, {1, 1, 1, 1}),
                               floats(context_, moves, {1, 2, 2, 8}), Tensor(), Tensor(), {});
                 }),
                 Status::Shape, {"4 windows"});
}

}  // namespace
}  // namespace tiny
