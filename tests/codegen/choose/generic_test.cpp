// Kernels that fit no family get lanes and registers all the same.
#include <gtest/gtest.h>

#include <algorithm>

#include "codegen/choose/choose.h"
#include "codegen/choose/strategies.h"
#include "codegen/pipeline.h"
#include "cost/limit.h"
#include "cost/processors.h"
#include "engine/context.h"
#include "schedule/schedule.h"
#include "tensor/activation.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/program.h"
#include "tensor/reduce.h"
#include "tensor/window.h"
#include "tests/support/context.h"

namespace tiny {
namespace {

class GenericTest : public ::testing::Test {
 protected:
  Tensor input(const Ints& shape) { return make_placeholder(context_, kFloat32, to_shape(shape)); }
  Kernel kernel_of(const Tensor& t) {
    const UOp stored = context_->graph().make(Op::Contiguous, {t.node()});
    const Schedule schedule = make_schedule({&stored, 1}, target_);
    return prepare_kernel(schedule.kernels.back().kernel, target_);
  }

  Ref<Context> context_ = testing::planning_context();
  Machine target_ = avx512_machine();
};

// The windows of a small picture are walked for all rows at once, each of which shares what it
// loads with the next.
TEST_F(GenericTest, IsTakenWhereItIsEstimatedToTakeFarLess) {
  const Window halves{.strides = {2, 2}, .before = {1, 1}, .after = {1, 1}, .kernel = {2, 2}};
  const Kernel kernel = kernel_of(max_pool(input({1, 192, 14, 14}), halves));
  const OptimisedKernel chosen = optimise(kernel, target_);
  ASSERT_GT(chosen.proposed.size(), 1U);
  EXPECT_NE(chosen.proposed.front().strategy, "generic");
  int taken = 0;
  for (const ProposalNote& p : chosen.proposed) {
    EXPECT_GT(p.cost.seconds, 0);
    if (!p.is_taken) continue;
    ++taken;
    EXPECT_EQ(p.strategy, "generic");
    EXPECT_LT(kClearly * p.cost.seconds, chosen.proposed.front().cost.seconds);
    EXPECT_EQ(to_text(p.options), to_text(chosen.options));
  }
  EXPECT_EQ(taken, 1);
}

// Where lanes along the image and along the channels cost about as much, or the first are far from
// what the kernel must take, the estimate says which.
TEST_F(GenericTest, BothOfTwoLanesAreTried) {
  const Window strided{.strides = {4}, .before = {1}, .after = {1}};
  const Kernel kernel =
      kernel_of(conv(input({1, 411, 1124}), input({121, 411, 3}), Tensor(), strided));
  const OptimisedKernel chosen = optimise(kernel, target_);
  const auto is_tile = [](const ProposalNote& p) { return p.strategy == "contraction"; };
  ASSERT_EQ(std::ranges::count_if(chosen.proposed, is_tile), 2);
  EXPECT_LT(chosen.proposed[0].cost.seconds, 1.05 * chosen.proposed[1].cost.seconds);
}

// Rows of a picture of a run's size, and its pictures, are as far apart as the run says: columns
// are the rows of a tile.
TEST_F(GenericTest, ColumnsOfAPictureOfARunsSizeShareATile) {
  const auto size = [&](const char* name, int64_t most) {
    return Dim(context_->graph().variable(name, 2, most));
  };
  const Shape shape{size("n", 8), Dim(64), size("h", 256), size("w", 256)};
  const Tensor x = make_placeholder(context_, kFloat32, shape);
  const Window same{.before = {1, 1}, .after = {1, 1}};
  const Kernel kernel =
      kernel_of(permute(conv(x, input({64, 64, 3, 3}), Tensor(), same), {0, 2, 3, 1}));
  const auto is_tiled = [&](const char* range) {
    const std::string list = to_text(optimise(kernel, target_).options);
    return list.find(cat("TILE ", range, " ")) != std::string::npos;
  };
  EXPECT_FALSE(is_tiled("r0")) << to_string(kernel);
  EXPECT_FALSE(is_tiled("r1")) << to_string(kernel);
  EXPECT_TRUE(is_tiled("r2")) << to_string(kernel);
}

// Forms are told apart by what kernels reduce.
TEST_F(GenericTest, EveryKernelHasOneFirstStrategy) {
  const auto first_of = [&](const Tensor& t) {
    return all_proposals(Seen(kernel_of(t), target_, kProgramRuns)).front().strategy;
  };
  const Tensor x = input({64, 96});
  EXPECT_EQ(first_of(relu(x)), "elementwise");
  EXPECT_EQ(first_of(matmul(x, input({96, 64}))), "contraction");
  EXPECT_EQ(first_of(softmax(x, 1)), "rows");
}

// Elements that an index names, which is checked, are gathered.
TEST_F(GenericTest, SingleElementsAreGatheredInLanes) {
  const Tensor index = make_placeholder(context_, kInt64, {100, 254});
  const Kernel kernel = kernel_of(take_along_axis(input({560, 254}), index, 0));
  for (const Machine& target : {avx512_machine(), avx2_machine()}) {
    const std::string list = to_text(optimise(kernel, target).options);
    EXPECT_NE(list.find("; VEC"), std::string::npos) << list;
  }
}

// A channel's scale (squeeze and excite) is made of few sums, which have lanes of their own: the
// kernel takes little more than it would by scales that are known.
TEST_F(GenericTest, OutputsHaveLanesBesideThoseOfSumsThatAllShare) {
  constexpr double kLittle = 1.25;
  imitate(*find_processor("emeraldrapids"), target_);
  const auto product = [&](const Tensor& of, int64_t channels) {
    return conv(of, input({channels, of.shape()[1].value(), 1, 1}), Tensor(), {.kernel = {1, 1}});
  };
  for (const Ints& shape : {Ints{1, 40, 9, 27}, Ints{1, 24, 31, 17}}) {
    const int64_t channels = shape[1], few = 4;
    const auto seconds_by = [&](const Tensor& scale) {
      const Tensor made = product(mul(hard_swish(input(shape)), scale), channels);
      const UOp stored = context_->graph().make(Op::Contiguous, {made.node()});
      const Schedule schedule = make_schedule({&stored, 1}, target_);
      const Kernel scaled = prepare_kernel(schedule.kernels.front().kernel, target_);
      return optimise(scaled, target_).seconds - target_.launch_seconds;
    };
    const Tensor means = input({1, channels, 1, 1});
    const Tensor excited = hard_sigmoid(product(relu(product(means, few)), channels), 0.2, 0.5);
    EXPECT_LT(seconds_by(excited), kLittle * seconds_by(means)) << channels << " channels";
  }
}

// A sum of what is expanded walks ranges that its value does not depend on, and has lanes of one.
TEST_F(GenericTest, SumsOfWhatIsExpandedHaveLanesOfOneRange) {
  target_ = avx2_machine();
  const Tensor wide = expand(input({1, 1, 24, 40}), to_shape({1 << 12, 1 << 12, 24, 40}));
  const Kernel kernel = kernel_of(sum(exp(mul(wide, wide)), {0, 1, 2, 3}));
  const OptimisedKernel chosen = optimise(kernel, target_);
  EXPECT_GT(chosen.proposed.size(), 1U);
  for (const ProposalNote& p : chosen.proposed)
    EXPECT_TRUE(has_lanes_of_one_range(apply_options(kernel, p.options))) << to_text(p.options);
}

// What is near its limit already costs no look at other lists.
TEST_F(GenericTest, IsNotAskedNearTheLimit) {
  const Kernel kernel = kernel_of(relu(input({1 << 16})));
  EXPECT_TRUE(optimise(kernel, target_).proposed.empty());
}

// The same list again: choices are part of cache keys.
TEST_F(GenericTest, ChoosesTheSameAgain) {
  const Tensor x = input({3, 37, 5, 11});
  const Kernel kernel = kernel_of(sum(permute(exp(x), {3, 1, 0, 2}), {1}));
  EXPECT_EQ(to_text(choose_options(kernel, target_)), to_text(choose_options(kernel, target_)));
}

// Every list that is proposed replays.
TEST_F(GenericTest, ProposesListsThatReplay) {
  const Kernel kernel = kernel_of(matmul(input({33, 70}), permute(input({50, 70}), {1, 0})));
  const std::vector<Proposal> proposals = all_proposals(Seen(kernel, target_, kProgramRuns));
  ASSERT_FALSE(proposals.empty());
  for (const Proposal& p : proposals) {
    const Kernel again = apply_options(kernel, parse_options(to_text(p.made.options)));
    EXPECT_EQ(again.ranges.size(), p.made.kernel.ranges.size());
    EXPECT_EQ(estimate(again, target_).seconds, p.cost.seconds);
  }
}

// Lanes of all vectors of a list.
int64_t lanes_of(const Kernel& kernel) {
  int64_t lanes = 1;
  for (const KernelRange& r : kernel.ranges)
    if (r.kind == RangeKind::Vec) lanes = std::max(lanes, r.range.src(0).const_int());
  return lanes;
}

// Where units compute half of a vector at once, 24 columns are three half vectors, not two whole
// ones of which a quarter is left out; 32 are two whole ones, and no other list is looked at.
TEST_F(GenericTest, HalfVectorsLeaveOutFewerLanes) {
  const auto chosen = [&](int64_t columns, int32_t unit_bytes) {
    target_.unit_bytes = unit_bytes;
    const Tensor x = input({96, 256}), w = input({256, columns});
    return optimise(kernel_of(matmul(x, w)), target_);
  };
  EXPECT_EQ(lanes_of(chosen(24, 64).kernel), 16);
  EXPECT_EQ(lanes_of(chosen(32, 32).kernel), 16);
  EXPECT_EQ(chosen(32, 32).proposed.size(), chosen(32, 64).proposed.size());
  const OptimisedKernel halves = chosen(24, 32);
  EXPECT_EQ(lanes_of(halves.kernel), 8);
  const auto taken = std::ranges::find_if(halves.proposed, &ProposalNote::is_taken);
  ASSERT_NE(taken, halves.proposed.end());
  EXPECT_EQ(taken->cost.seconds, estimate(halves.kernel, target_).seconds);
  EXPECT_LT(taken->cost.seconds, halves.proposed.front().cost.seconds);
}

}  // namespace
}  // namespace tiny
