// Sums of products whose operands lie badly for lanes.
#include <gtest/gtest.h>

#include <string>

#include "codegen/choose/choose.h"
#include "codegen/pipeline.h"
#include "engine/context.h"
#include "schedule/schedule.h"
#include "tensor/elementwise.h"
#include "tensor/movement.h"
#include "tensor/program.h"
#include "tensor/reduce.h"
#include "tensor/window.h"
#include "tests/support/context.h"

namespace tiny {
namespace {

class ContractionTest : public ::testing::Test {
 protected:
  Tensor input(const Ints& shape) { return make_placeholder(context_, kFloat32, to_shape(shape)); }

  Ref<Context> context_ = testing::planning_context();
  Machine target_ = avx512_machine();
};

// The filter's gradient of a transposed convolution that makes pictures of 8 x 8, for four places
// of a tap in each direction: channels, along which lanes are, are a picture apart in memory, as
// far as the taps reach that lie on its padding.  The panel has an element of another channel here
// and there, and is still laid out for lanes.
TEST_F(ContractionTest, PaddingDoesNotKeepAPanelFromBeingLaidOut) {
  const Shape around{0, 0, 1, 1};
  const Tensor pictures =
      reshape(pad(input({16, 64, 8, 8}), around, around), to_shape({16, 64, 5, 2, 5, 2}));
  const Tensor slopes = windows(pad(input({16, 128, 4, 4}), around, around), {.kernel = {5, 5}});
  const Tensor product =
      reshape(permute(pictures, {0, 1, 3, 5, 2, 4}), to_shape({16, 1, 64, 1, 2, 1, 2, 5, 5})) *
      reshape(slopes, to_shape({16, 128, 1, 2, 1, 2, 1, 5, 5}));
  const UOp stored = context_->graph().make(Op::Contiguous, {sum(product, {0, 7, 8}).node()});
  const Schedule schedule = make_schedule({&stored, 1}, target_);
  const Kernel kernel = prepare_kernel(schedule.kernels.back().kernel, target_);
  const std::string list = to_text(optimise(kernel, target_).options);
  EXPECT_NE(list.find("; STAGE p0 "), std::string::npos) << list;
}

}  // namespace
}  // namespace tiny
