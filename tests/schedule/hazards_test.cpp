// The order of kernels that write memory.
#include "schedule/hazards.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "autograd/gradient.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/matmul.h"
#include "tensor/reduce.h"
#include "tensor/value.h"
#include "tests/support/graph_test.h"

namespace tiny {
namespace {

class Hazards : public testing::GraphTest {};

// The last layer first, each before the gradient of the layer before is made, so that what belongs
// to a layer can be forgotten.
TEST_F(Hazards, ALayersParameterIsUpdatedWithItsGradient) {
  constexpr size_t kLayers = 8;
  std::vector<Tensor> weights;
  Tensor h = given({48, 64});
  for (size_t i = 0; i < kLayers; ++i) {
    weights.push_back(given({64, 64}));
    h = tanh(matmul(h, weights.back()));
  }
  const std::vector<Tensor> losses{sum(mul(h, h), {0, 1}, false)};
  const std::vector<Tensor> slopes = gradients(losses, {}, weights);
  std::vector<UOp> memory, wanted;
  for (size_t i = 0; i < kLayers; ++i) {
    memory.push_back(weights[i].node());
    assign(weights[i], sub(weights[i], slopes[i]));
    wanted.push_back(weights[i].node());
  }
  const Schedule schedule = make_schedule(wanted, avx512_machine(), true);
  std::vector<std::ptrdiff_t> places;
  for (const UOp& w : memory)
    places.push_back(std::ranges::find_if(schedule.kernels,
                                          [&](const ScheduledKernel& k) {
                                            const UOp& value = k.stores.front().value;
                                            return value.op() == Op::Assign && value.src(0) == w;
                                          }) -
                     schedule.kernels.begin());
  // What is before the first layer has no gradient: its weight's is made beside the second's.
  for (size_t i = 2; i < kLayers; ++i) {
    EXPECT_LT(places[i], places[i - 1]) << i;
    EXPECT_LE(places[i - 1] - places[i], 3) << i;  // the layer's gradient, its weight's, the write
  }
  EXPECT_EQ(std::max(places[0], places[1]), std::ssize(schedule.kernels) - 1);
}

}  // namespace
}  // namespace tiny
