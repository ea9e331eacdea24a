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
  for (const int64_t size : {3, 5, 7}) {
    const Tensor image = permute(input({1, 41, 41, 32}), {0, 3, 1, 2});
    const Window window{{2, 2}, {}, {1, 1}, {0, 0}};
    const Tensor made = conv(image, input({32, 1, size, size}), Tensor(), window.with_groups(32));
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
    EXPECT_EQ(squares, 1) << size;
  }
}

}  // namespace
}  // namespace tiny
