// The loops that lists of options make of naive kernels: a matrix product, a softmax, a
// convolution. tests/golden/nest_*.txt holds the kernel as the scheduler makes it, the list, and
// the loops.
#include <gtest/gtest.h>

#include <string>

#include "codegen/pipeline.h"
#include "engine/compile.h"
#include "ir/nest.h"
#include "ir/tree.h"
#include "schedule/schedule.h"
#include "tensor/activation.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/window.h"
#include "tests/golden/golden.h"
#include "tests/support/context.h"
#include "tests/support/tensors.h"

namespace tiny {
namespace {

class Nests : public ::testing::Test {
 protected:
  Tensor input(const Ints& shape) { return testing::float_input(context_, shape); }

  // The one kernel that computes `value` row-major.
  Kernel kernel_of(const Tensor& value) {
    const UOp stored = context_->graph().make(Op::Contiguous, {value.node()});
    const Schedule schedule = make_schedule({&stored, 1}, avx512_machine(), true);
    EXPECT_EQ(schedule.kernels.size(), 1u);
    return schedule.kernels.front().kernel;
  }

  static CodegenResult generated(const Kernel& kernel, const std::string& options) {
    PipelineOptions pipeline;
    pipeline.verify = true;
    pipeline.optimise = false;
    pipeline.options_text = options;
    return generate(kernel, avx512_machine(), pipeline);
  }

  // The kernel and what the options make of it.
  std::string nest(const Tensor& value, const std::string& options) {
    const Kernel kernel = kernel_of(value);
    const CodegenResult result = generated(kernel, options);
    return tree_text(kernel.roots) + "options " + result.options + "\n" + result.program.name +
           "\n" + nest_text(result.program);
  }

  Ref<Context> context_ = testing::planning_context();
};

TEST_F(Nests, AProductWithoutOptionsIsThreeLoops) {
  const Tensor c = matmul(input({100, 512}), input({512, 1024}));
  testing::expect_golden("nest_product_plain", nest(c, ""));
}

// Wanted: nc { ko { fill Bs; mo { fill As; no { acc; ki { 28 fma }; C }}}}, the last mo on its own.
TEST_F(Nests, AProductKeepsPanelsInScratch) {
  const Tensor c = matmul(input({100, 512}), input({512, 1024}));
  testing::expect_golden("nest_product",
                         nest(c,
                              "TILE r2 256; TILE r1 512; TILE r4 32; TILE r5 16; TILE r0 14; "
                              "ORDER r1 r2 r0 r4 r3 r7 r5 r6; VEC r6; UPCAST r7; UPCAST r5; "
                              "STAGE p1 r2 r4 r3 r5 r6; STAGE p0 r0 r7 r3 pad 16"));
}

// The last block of columns has five panels and a part of one: it walks these alone.
TEST_F(Nests, AProductsLastBlockOfColumnsWalksThePanelsThatItHas) {
  const Tensor c = matmul(input({98, 512}), input({512, 700}));
  testing::expect_golden("nest_product_blocks",
                         nest(c,
                              "TILE r2 256; TILE r1 512; TILE r4 32; TILE r5 16; TILE r0 14; "
                              "ORDER r1 r2 r0 r4 r3 r7 r5 r6; VEC r6; UPCAST r7; UPCAST r5; "
                              "STAGE p1 r2 r4 r3 r5 r6"));
}

// Wanted: m { a {4 max}; fold; b {e = exp; E = e; 4 sums}; fold; d = 1 / S; n {O = E * d} }.
TEST_F(Nests, ASoftmaxIsThreeLoopsInARow) {
  const Tensor o = softmax(input({4096, 1024}), 1);
  // The exponential is wanted over two ranges that are equal up to renaming: staged by its number.
  testing::expect_golden("nest_softmax",
                         nest(o,
                              "TILE r2 64; TILE r4 16; UPCAST r4; VEC r5; TILE r3 64; "
                              "TILE r6 16; UPCAST r6; VEC r7; TILE r1 64; TILE r8 16; "
                              "UPCAST r8; VEC r9; STAGE v75 r0"));
}

// Wanted: no { h { wo=0 {acc; kh in max(0,1-h)..min(3,H+1-h) { kw=0 {..} kw=1..2 {..} }}; wo=1..2;
// wo=3 }}.
TEST_F(Nests, AConvolutionPeelsItsEdges) {
  const int64_t channels = 64;
  const Tensor x = permute(input({1, 56, 56, channels}), {0, 3, 1, 2});
  const Tensor w = permute(input({3, 3, channels, 64}), {3, 2, 0, 1});
  Window window;
  window.before = window.after = {1, 1};
  const Tensor y = permute(conv(x, w, Tensor(), window), {0, 2, 3, 1});
  testing::expect_golden("nest_convolution_plain", nest(y, ""));
  // r0 h, r1 w, r2 co; r3 ci, r4 kh, r5 kw.
  testing::expect_golden(
      "nest_convolution",
      nest(y,
           "TILE r1 14; TILE r2 32; TILE r7 16; ORDER r2 r0 r1 r4 r5 r3 r6 r7 r8; VEC r8; "
           "UPCAST r6; UPCAST r7"));
}

// Two tiles of seven rows, each with an edge: nothing is left for a loop between them, whose loads
// would lie outside of the buffer under masks that are never set.  A processor takes a hundred
// cycles for such a load if the page is not there.
TEST_F(Nests, TwoTilesThatAreEdgesBothHaveNoMasks) {
  const Tensor x = permute(input({1, 14, 14, 64}), {0, 3, 1, 2});
  const Tensor w = permute(input({1, 3, 3, 64}), {3, 0, 1, 2});
  Window window;
  window.before = window.after = {1, 1};
  const Tensor y = permute(conv(x, w, Tensor(), window.with_groups(64)), {0, 2, 3, 1});
  const Kernel kernel = kernel_of(y);
  // r0 h, r1 w, r2 c; r3 kh, r4 kw.
  for (const int64_t rows : {5, 7, 14}) {
    const CodegenResult result = generated(
        kernel, cat("TILE r0 ", rows, "; UPCAST r5; UNROLL r3; UNROLL r4; TILE r2 16; ", "VEC r6"));
    for (const LinearOp& op : result.program.ops)
      EXPECT_FALSE(op.op == Op::Load && op.count > 2) << rows << " rows";
  }
}

// Rows of which most lie behind the buffer are asked for at its start, beside masks; where one row
// does, the mask alone costs less.
TEST_F(Nests, WhatLiesFarOutsideIsNotAskedFor) {
  for (const int64_t behind : {1, 100}) {
    const Tensor x = pad(input({40, 64}), {0, 0}, {behind, 0});
    const CodegenResult result = generated(kernel_of(x), "TILE r1 16; VEC r2");
    const std::vector<LinearOp>& ops = result.program.ops;
    int masked = 0;
    for (const LinearOp& op : ops) {
      if (op.op != Op::Load || op.count < 3) continue;
      ++masked;
      EXPECT_EQ(ops[op.src[1]].op == Op::Where, behind > 1);
    }
    EXPECT_GT(masked, 0);
  }
}

// A convolution of a picture that is made twice as large on the way: padding is a choice of zero
// beside its products, and its steps are left out as those of what memory holds.
TEST_F(Nests, StepsOfChosenZerosAreLeftOut) {
  const Tensor x = reshape(input({1, 16, 14, 14}), {1, 16, 14, 1, 14, 1});
  const Tensor large = reshape(expand(x, {1, 16, 14, 2, 14, 2}), {1, 16, 28, 28});
  Window window;
  window.before = window.after = {1, 1};
  const Kernel kernel = kernel_of(conv(large, input({8, 16, 3, 3}), Tensor(), window));
  ASSERT_EQ(kernel.ranges.size(), 6u);
  const CodegenResult result =
      generated(kernel, "UPCAST r2; VEC r0; ORDER r5 r4; ORDER r5 r3; ORDER r4 r3");
  for (const LinearOp& op : result.program.ops)
    EXPECT_FALSE(op.op == Op::Where && op.dtype.is_float());
}

}  // namespace
}  // namespace tiny
