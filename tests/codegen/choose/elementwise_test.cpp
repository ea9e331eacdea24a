// What is moved takes little more than a copy, in whatever order its axes are.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/text.h"
#include "codegen/choose/choose.h"
#include "codegen/pipeline.h"
#include "cost/estimate.h"
#include "engine/context.h"
#include "schedule/schedule.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/grid_sample.h"
#include "tensor/indexing.h"
#include "tensor/movement.h"
#include "tensor/program.h"
#include "tensor/window.h"
#include "tests/support/constants.h"
#include "tests/support/context.h"
#include "tests/support/tensors.h"

namespace tiny {
namespace {

class ElementwiseChoiceTest : public ::testing::Test {
 protected:
  Tensor input(const Ints& shape) { return make_placeholder(context_, kFloat32, to_shape(shape)); }
  Schedule scheduled(const Tensor& made) const {
    const UOp stored = context_->graph().make(Op::Contiguous, {made.node()});
    return make_schedule({&stored, 1}, target_);
  }
  // The last kernel of what makes a value, and the only one.
  OptimisedKernel last_of(const Tensor& made) const {
    return optimise(prepare_kernel(scheduled(made).kernels.back().kernel, target_), target_);
  }
  OptimisedKernel chosen(const Tensor& made) const {
    EXPECT_EQ(scheduled(made).kernels.size(), 1U);
    return last_of(made);
  }
  // What the kernel that makes a value is estimated to take under its list.
  double seconds(const Tensor& made) const {
    return estimate(chosen(made).kernel, target_).seconds - target_.launch_seconds;
  }

  Ref<Context> context_ = testing::planning_context();
  Machine target_ = avx512_machine();
};

// Short axes, odd ones and tiles that do not fit, read or stored innermost.
TEST_F(ElementwiseChoiceTest, EveryOrderOfAxesIsNearACopy) {
  constexpr double kNear = 4;
  for (const Ints& shape : {Ints{3, 50, 70, 9}, Ints{8, 64, 5, 40}, Ints{30, 3, 60, 21},
                            Ints{16, 12, 33, 64}, Ints{2, 64, 56, 56}}) {
    const double copy = seconds(neg(input(shape)));
    Ints order = {0, 1, 2, 3};
    while (std::ranges::next_permutation(order).found)
      EXPECT_LT(seconds(permute(neg(input(shape)), order)), kNear * copy)
          << cat("axes ", order[0], " ", order[1], " ", order[2], " ", order[3], " of ", shape[0],
                 "x", shape[1], "x", shape[2], "x", shape[3]);
  }
}

// Cores share what is read and stored, which is more where a step reads four values than one.
TEST_F(ElementwiseChoiceTest, CoresShareFewStepsOfManyValues) {
  target_.cores = 2;
  const auto is_shared = [&](const Tensor& made) {
    return to_text(chosen(made).options).ends_with("; THREAD r0");
  };
  const auto sum = [&](int64_t size) {
    return input({size, 64}) * input({size, 64}) + input({size, 64}) * input({size, 64});
  };
  EXPECT_PRED1(is_shared, neg(input({1024, 64})));
  EXPECT_FALSE(is_shared(neg(input({1023, 64}))));
  EXPECT_PRED1(is_shared, sum(410));
  EXPECT_FALSE(is_shared(sum(409)));
}

// Rows that take turns are woven wherever the turns begin, and where the last are left out.
TEST_F(ElementwiseChoiceTest, TurnsFromTheMiddleAreNearACopy) {
  constexpr double kNear = 4;
  for (const int64_t turns : {2, 3}) {
    const Tensor all =
        reshape(permute(input({turns, 12, 50, 40}), {1, 2, 3, 0}), to_shape({12, 50, 40 * turns}));
    for (const int64_t end : {40 * turns, 40 * turns - turns + 1}) {
      const Tensor cut = shrink(all, {0, 0, 1}, {12, 50, end});
      EXPECT_LT(seconds(neg(cut)), kNear * seconds(neg(input({12, 50, end - 1}))))
          << turns << " turns to " << end << ": " << to_text(chosen(neg(cut)).options);
    }
  }
}

// Rows of tiles that are shorter than a vector (outputs of Winograd's transform of a small picture)
// are stored as a whole, as longer ones are in parts.
TEST_F(ElementwiseChoiceTest, RowsOfFewTilesAreStoredAsAWhole) {
  constexpr double kNear = 1.9;  // what is turned by rows of a tile takes twice a copy
  for (const int64_t tiles : {2, 3, 4, 8}) {
    const Tensor of = input({10, tiles, 1, 64});
    const Tensor place = reshape(arange(context_, kFloat32, 4), to_shape({1, 1, 4, 1}));
    const auto up_to = [&](double last) {
      return less_equal(place, full(context_, kFloat32, {}, last));
    };
    const Tensor turns = where(up_to(0), of, where(up_to(2), mul(of, of), neg(of)));
    const Tensor rows = reshape(permute(turns, {3, 0, 1, 2}), to_shape({64, 10, 4 * tiles}));
    EXPECT_LT(seconds(rows), kNear * seconds(neg(input({64, 10, 4 * tiles}))))
        << tiles << " tiles: " << to_text(chosen(rows).options);
  }
}

// Corners of samples, each in a line of its own: that these come from far is most of every
// estimate, and no reason to leave a kernel without lanes.
TEST_F(ElementwiseChoiceTest, WhatIsLookedUpIsNotLeftAsItIs) {
  for (const int64_t heads : {4, 8})
    for (const int64_t places : {400, 1600, 6400})
      for (const int64_t queries : {75, 100, 300}) {
        const int64_t size = 32, samples = 4 * queries;
        const Tensor all = add(input({8400, heads * size}), input({heads * size}));
        const Tensor values = slice_axis(all, 0, 8400 - places, 8400);
        const Tensor planes = reshape(permute(values, {1, 0}), to_shape({heads, size, places}));
        Tensor sum;
        for (int corner = 0; corner < 4; ++corner) {
          const auto of_sample = [&](DType dtype) {
            return make_placeholder(context_, dtype, to_shape({heads, 1, samples}));
          };
          const Tensor at = expand(of_sample(kInt64), to_shape({heads, size, samples}));
          const Tensor seen = where(of_sample(kBool), take_along_axis(planes, at, 2),
                                    Tensor::weak_float(context_, 0));
          const Tensor weighted = mul(seen, of_sample(kFloat32));
          sum = sum ? add(sum, weighted) : weighted;
        }
        const OptimisedKernel made = chosen(reshape(sum, to_shape({heads, size, queries, 4})));
        EXPECT_FALSE(made.options.empty())
            << heads << " heads, " << places << " places, " << queries << " queries";
      }
}

// As many lanes as a vector holds indices, where all but the gathered load lies side by side.
TEST_F(ElementwiseChoiceTest, GathersHaveLanes) {
  const Tensor index = make_placeholder(context_, kInt64, {100, 254});
  EXPECT_EQ(to_text(chosen(take_along_axis(input({560, 254}), index, 0)).options),
            "TILE r1 64; TILE r2 8; UPCAST r2; VEC r3");
  const Tensor narrow = make_placeholder(context_, kInt32, {100, 254});
  EXPECT_EQ(to_text(chosen(take_along_axis(input({560, 254}), narrow, 0)).options),
            "TILE r1 64; TILE r2 8; UPCAST r2; VEC r3");
}

// What a pooled image is transformed to has lanes along its channels, which are stored side by
// side, though pixels are read so; no more of them than are loaded one by one for 36 values.
TEST_F(ElementwiseChoiceTest, ValuesChosenByPositionHaveLanesAsTheyAreStored) {
  Flags flags = testing::flags_for("null", "avx512");
  flags.cache = 0;
  flags.threads = 1;
  const Ref<Context> context = make_ref<Context>(flags);
  const Tensor x = make_placeholder(context, kFloat32, {1, 32, 26, 50});
  const testing::Floats ones(static_cast<size_t>(32 * 96 * 9), 1);
  const Tensor weights = testing::floats(context, ones, {96, 32, 3, 3});
  const Tensor pooled = max_pool(x, Window{{2, 2}}.with_kernel({2, 2}));
  const Tensor made = conv(pooled, weights, Tensor(), Window{{}, {}, {1, 1}, {1, 1}});
  const Ref<const TensorProgram> program = testing::compile_with_constants(context, x, made);
  const auto& tape = program->compiled.program->tape;
  EXPECT_TRUE(std::ranges::any_of(
      tape, [](const auto& entry) { return entry.info.name == "E_4_7_4_8_6_6"; }));
}

}  // namespace
}  // namespace tiny
