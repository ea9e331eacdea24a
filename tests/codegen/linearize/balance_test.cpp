// Tiles of rows of run-time number: what one fetches for later.
#include "codegen/linearize/balance.h"

#include <gtest/gtest.h>

#include "codegen/choose/choose.h"
#include "codegen/pipeline.h"
#include "engine/backend.h"
#include "rules/symbolic.h"
#include "schedule/schedule.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/program.h"
#include "tests/support/context.h"
#include "tests/support/tensors.h"

namespace tiny {
namespace {

// Each tile of rows fetches a piece of the next panel, the first the first one, wherever it begins.
TEST(BalancedTiles, FetchThePanelPieceByPiece) {
  const Ref<Context> context = testing::planning_context();
  const UOp rows = context->graph().variable("n", 1, 256);
  const Tensor x = make_placeholder(context, kFloat32, {Dim(rows), 256});
  const Tensor panels = testing::floats(context, testing::Floats(256 * 256, 1), {16, 256, 16});
  const Tensor w = reshape(permute(panels, {1, 0, 2}), {256, 256});
  const UOp stored = context->graph().make(Op::Contiguous, {matmul(x, w).node()});
  const Machine& target = context->backend().machine();
  const Schedule schedule = make_schedule({&stored, 1}, target);
  const Kernel kernel = prepare_kernel(schedule.kernels.front().kernel, target);
  const OptimisedKernel chosen = optimise(kernel, target);
  const BalancedKernel balanced = balance_tiles(split_outer_reduction(chosen.kernel));
  ASSERT_FALSE(balanced.kernel.prefetches.empty()) << to_text(chosen.options);
  ASSERT_TRUE(to_text(chosen.options).starts_with("TILE r0 29; ")) << to_text(chosen.options);
  size_t cut = 0;
  while (cut < balanced.tiles.size() && !balanced.tiles[cut]) ++cut;
  ASSERT_LT(cut, balanced.tiles.size());
  const UOp& start = balanced.kernel.ranges[cut].range;
  const auto place_at = [&](int64_t row) {
    const UOp& index = balanced.kernel.prefetches.front().index;
    return simplify_index(substitute(index, {{start, start.graph().integer(row)}}));
  };
  // Of 28 rows the second tile begins at 14, of 52 at 26.
  EXPECT_FALSE(place_at(0) == place_at(14));
  EXPECT_TRUE(place_at(14) == place_at(26));
}

}  // namespace
}  // namespace tiny
