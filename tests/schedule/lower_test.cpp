// What index expressions of kernels look like.
#include "schedule/lower.h"

#include <gtest/gtest.h>

#include "schedule/schedule.h"
#include "tensor/activation.h"
#include "tensor/elementwise.h"
#include "tensor/movement.h"
#include "tests/support/context.h"
#include "tests/support/tensors.h"

namespace tiny {
namespace {

// Groups of channels, normalised as rows, are pictures again and padded: a pixel's row is told by
// its channel alone, as without the pad.
TEST(Lower, WhatIsReshapedBelowAPadComesApart) {
  const Ref<Context> context = testing::new_context("interp");
  const Tensor rows = testing::float_input(context, {16, 256});
  const Tensor shift = testing::float_input(context, {16, 1});
  const Tensor pictures = reshape(rows - shift, {1, 64, 8, 8});
  const Tensor padded = pad(silu(pictures), {0, 0, 1, 1}, {0, 0, 1, 1});
  const UOp stored = padded.graph().make(Op::Contiguous, {permute(padded, {0, 2, 3, 1}).node()});
  const Schedule schedule = make_schedule({&stored, 1}, avx512_machine());
  ASSERT_EQ(schedule.kernels.size(), 1U);
  int quotients = 0;
  for (const UOp& u : topological(schedule.kernels[0].kernel.roots)) {
    if (u.op() != Op::FloorDiv && u.op() != Op::FloorMod) continue;
    ++quotients;
    EXPECT_EQ(u.src(0).op(), Op::Range);
  }
  EXPECT_GT(quotients, 0);
}

}  // namespace
}  // namespace tiny
