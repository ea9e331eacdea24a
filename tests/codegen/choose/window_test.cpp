// Windows whose lanes are channels, stored by pixels, go through registers by squares.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "codegen/choose/choose.h"
#include "codegen/pipeline.h"
#include "cost/access_table.h"
#include "engine/context.h"
#include "schedule/schedule.h"
#include "tensor/create.h"
#include "tensor/movement.h"
#include "tensor/program.h"
#include "tensor/window.h"
#include "tests/support/context.h"

namespace tiny {
namespace {

TEST(WindowChoice, TurnsWhatIsStoredAcross) {
  const Ref<Context> context = testing::planning_context();
  const Machine machine = avx512_machine();
  const auto input = [&](const Ints& shape) {
    return make_placeholder(context, kFloat32, to_shape(shape));
  };
  struct Case {
    int64_t size;
    bool is_packed;  // the weights' channels side by side, as constant weights are laid out
  };
  // Of 25 weights that lie apart in channels, tiles load so many one by one that without tiles it
  // takes 10.7 us for 18.3 (Emerald Rapids, 2026-12-01, TINY_OPTS in turns).
  for (const auto& [size, is_packed] :
       {Case{3, true}, Case{5, true}, Case{7, true}, Case{3, false}, Case{7, false}}) {
    const Tensor weights =
        is_packed ? permute(input({1, size, size, 32}), {3, 0, 1, 2}) : input({32, 1, size, size});
    const Tensor image = permute(input({1, 41, 41, 32}), {0, 3, 1, 2});
    const Window window{{2, 2}, {}, {1, 1}, {0, 0}};
    const Tensor made = conv(image, weights, Tensor(), window.with_groups(32));
    const UOp stored = context->graph().make(Op::Contiguous, {made.node()});
    const Schedule schedule = make_schedule({&stored, 1}, machine);
    const Kernel prepared = prepare_kernel(schedule.kernels.back().kernel, machine);
    const Kernel kernel = optimise(prepared, machine).kernel;
    int squares = 0;
    for (const AccessInfo& a : access_table(kernel).accesses) {
      bool is_apart = false, has_row = false;
      for (size_t i = 0; i < kernel.ranges.size(); ++i) {
        const RangeKind kind = kernel.ranges[i].kind;
        is_apart |= a.store && kind == RangeKind::Vec && std::abs(a.strides[i]) > 1;
        has_row |= a.store && kind == RangeKind::Upcast && a.strides[i] == 1;
      }
      squares += is_apart && has_row ? 1 : 0;
    }
    EXPECT_EQ(squares, 1) << size << (is_packed ? " packed" : "");
  }
}

}  // namespace
}  // namespace tiny
