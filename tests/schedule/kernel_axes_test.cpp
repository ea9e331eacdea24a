// Axes followed through movement to what a kernel reads.
#include "schedule/kernel_axes.h"

#include <gtest/gtest.h>

#include "tensor/elementwise.h"
#include "tensor/movement.h"
#include "tensor/program.h"
#include "tests/support/graph_test.h"

namespace tiny {
namespace {

class KernelAxesTest : public testing::GraphTest {
 protected:
  // Where an axis of a reshaped value lies before.
  Axis before(DType dtype, const Ints& from, const Ints& to, size_t axis) {
    const Tensor value = neg(make_placeholder(context_, dtype, to_shape(from)));
    const Tensor reshaped = reshape(value, to_shape(to));
    return KernelAxes::below({reshaped.node(), axis}, 0).axis;
  }
};

TEST_F(KernelAxesTest, NeighboursOfBytesStayNeighbours) {
  const Ints heads{24, 4, 16}, rows{24, 64};
  EXPECT_EQ(before(kInt8, heads, rows, 1), 2u) << "of axes that become one the innermost";
  EXPECT_EQ(before(kInt8, heads, rows, 0), 0u);
  EXPECT_EQ(before(kInt8, rows, heads, 2), 1u) << "the innermost of what one becomes";
  EXPECT_EQ(before(kInt8, rows, heads, 1), std::nullopt);
  EXPECT_EQ(before(kInt8, {24, 64, 1}, {24, 1, 64}, 2), 1u);
  EXPECT_EQ(before(kInt8, {6, 4}, {8, 3}, 0), std::nullopt);
}

TEST_F(KernelAxesTest, FloatsAreFollowedAlongWholeAxes) {
  EXPECT_EQ(before(kFloat32, {24, 4, 16}, {24, 64}, 1), std::nullopt);
  EXPECT_EQ(before(kFloat32, {24, 4, 16}, {24, 64}, 0), 0u);
}

}  // namespace
}  // namespace tiny
