// What is chosen among elements: places, different rows, boxes that do not overlap.
#include <gtest/gtest.h>

#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/movement.h"
#include "tensor/scatter.h"
#include "tensor/suppression.h"
#include "tensor/unique.h"
#include "tests/support/context.h"
#include "tests/support/tensors.h"

namespace tiny {
namespace {

using testing::Floats;
using testing::floats;
using testing::floats_of;

class Selection : public ::testing::TestWithParam<std::string> {
 protected:
  static Floats numbers(const Tensor& t) { return floats_of(cast(t, kFloat32)); }
  static Floats first(const Tensor& t, int64_t count) {
    return numbers(slice_axis(t, 0, 0, count));
  }
  Ref<Context> context_ = testing::new_context(GetParam());
};

INSTANTIATE_TEST_SUITE_P(Devices, Selection, ::testing::Values("cpu", "interp"));

TEST_P(Selection, PlacesStandInOrderWithZerosBehind) {
  const Chosen chosen = chosen_places(cast(floats(context_, {0, 1, 0, 0, 1, 1, 0}), kBool));
  EXPECT_EQ(numbers(chosen.places), (Floats{1, 4, 5, 0, 0, 0, 0}));
  EXPECT_EQ(numbers(chosen.count), Floats{3});
}

TEST_P(Selection, DifferentElementsAscendOrStandAsTheyCome) {
  const Tensor x = floats(context_, {3, 1, 3, 2, 1, 3});
  const Unique sorted = unique(x, false);
  EXPECT_EQ(numbers(sorted.count), Floats{3});
  EXPECT_EQ(first(sorted.first, 3), (Floats{1, 3, 0}));
  EXPECT_EQ(first(sorted.counts, 3), (Floats{2, 1, 3}));
  EXPECT_EQ(numbers(sorted.inverse), (Floats{2, 0, 2, 1, 0, 2}));
  const Unique placed = unique(x, true);
  EXPECT_EQ(first(placed.first, 3), (Floats{0, 1, 3}));
  EXPECT_EQ(first(placed.counts, 3), (Floats{3, 2, 1}));
  EXPECT_EQ(numbers(placed.inverse), (Floats{0, 1, 0, 2, 1, 0}));
}

TEST_P(Selection, RowsAreComparedFromTheirFirstElement) {
  const Unique found = unique(floats(context_, {1, 5, 0, 9, 1, 5, 1, 2}, {4, 2}), false);
  EXPECT_EQ(numbers(found.count), Floats{3});
  EXPECT_EQ(first(found.first, 3), (Floats{1, 3, 0}));
  EXPECT_EQ(numbers(found.inverse), (Floats{2, 0, 2, 1}));
}

// Boxes 0 and 1 share 0.5 / 1.5 of their union; box 2 is apart; box 3 is 0 with corners exchanged.
TEST_P(Selection, BoxesAreTakenByScoreUnlessABetterOneCoversThem) {
  const Tensor boxes =
      floats(context_, {0, 0, 1, 1, 0, 0.5f, 1, 1.5f, 5, 5, 6, 6, 1, 1, 0, 0}, {1, 4, 4});
  const Tensor scores = floats(context_, {0.5f, 0.9f, 0.3f, 0.6f}, {1, 1, 4});
  Dependences known;
  const auto taken = [&](double overlap, double least, int64_t most) {
    const Tensor limit = Tensor::weak_float(context_, overlap);
    return numbers(flatten(
        suppress_overlaps(boxes, scores, Tensor::weak_int(context_, most), cast(limit, kFloat32),
                          greater(scores, floats(context_, {static_cast<float>(least)})),
                          {.is_centre = false, .rounds = 4}, known)));
  };
  EXPECT_EQ(taken(0.5, 0, 4), (Floats{1, 3, 2, -1}));
  EXPECT_EQ(taken(0.2, 0, 4), (Floats{1, 2, -1, -1}));
  EXPECT_EQ(taken(0.5, 0.4, 4), (Floats{1, 3, -1, -1}));
  EXPECT_EQ(taken(0.5, 0, 1), (Floats{1, -1, -1, -1}));
}

}  // namespace
}  // namespace tiny
