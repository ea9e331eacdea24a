// Learning rates are those of torch.optim.lr_scheduler.
#include "nn/learning_rate.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/error.h"

namespace tiny {
namespace {

TEST(LearningRate, FallsInSteps) {
  EXPECT_DOUBLE_EQ(step_rate(0.5, 29, 30, 0.1), 0.5);
  EXPECT_DOUBLE_EQ(step_rate(0.5, 60, 30, 0.1), 0.5 * 0.1 * 0.1);
  const std::vector<int64_t> milestones{30, 80};
  EXPECT_DOUBLE_EQ(multi_step_rate(0.5, 29, milestones, 0.1), 0.5);
  EXPECT_DOUBLE_EQ(multi_step_rate(0.5, 30, milestones, 0.1), 0.05);
  EXPECT_DOUBLE_EQ(multi_step_rate(0.5, 99, milestones, 0.1), 0.5 * 0.1 * 0.1);
}

TEST(LearningRate, FollowsACosineAndALine) {
  EXPECT_DOUBLE_EQ(cosine_rate(1, 0, 10, 0.2), 1);
  EXPECT_NEAR(cosine_rate(1, 5, 10, 0.2), 0.6, 1e-12);
  EXPECT_DOUBLE_EQ(cosine_rate(1, 12, 10, 0.2), 0.2);
  EXPECT_DOUBLE_EQ(warm_up_rate(2, 0, 4, 0.25), 0.5);
  EXPECT_DOUBLE_EQ(warm_up_rate(2, 2, 4, 0.25), 1.25);
  EXPECT_DOUBLE_EQ(warm_up_rate(2, 9, 4, 0.25), 2);
}

// OneCycleLR(max_lr=1, total_steps=10): its rates at steps 0, 1, 2, 3, 6 and 9.
TEST(LearningRate, GoesThroughOneCycle) {
  const OneCycle cycle{1, 10};
  const double want[] = {0.04, 0.52, 1.0, 0.9504846320134737, 0.38874197806371075, 4e-06};
  const int64_t at[] = {0, 1, 2, 3, 6, 9};
  for (size_t i = 0; i < std::size(at); ++i)
    EXPECT_NEAR(one_cycle_rate(cycle, at[i]), want[i], 1e-9) << at[i];
  EXPECT_THROW(one_cycle_rate({1, 1}, 0), Error);
}

TEST(LearningRate, FallsOnAPlateau) {
  Plateau plateau(1, {.factor = 0.5, .patience = 1, .cooldown = 1, .least = 0.3});
  const double metrics[] = {2, 1, 1, 1, 1, 1, 1, 0.5, 0.5, 0.5, 0.5};
  const double want[] = {1, 1, 1, 0.5, 0.5, 0.5, 0.3, 0.3, 0.3, 0.3, 0.3};
  for (size_t i = 0; i < std::size(metrics); ++i)
    EXPECT_DOUBLE_EQ(plateau.next(metrics[i]), want[i]) << i;
}

TEST(LearningRate, APlateauGoesOnWhereItWas) {
  const Plateau::Options options{.factor = 0.5, .patience = 1, .cooldown = 1, .least = 0};
  Plateau first(1, options);
  for (const double metric : {2.0, 2.0, 2.0}) first.next(metric);
  Plateau second(7, options);
  for (const char* name : {"rate", "best", "bad_steps", "cooling"})
    second.set(name, first.get(name));
  for (const double metric : {2.0, 1.0, 1.0, 1.0, 1.0, 1.0})
    EXPECT_DOUBLE_EQ(second.next(metric), first.next(metric));
  EXPECT_LT(first.get("rate"), 0.5);
  EXPECT_THROW(first.get("worst"), Error);
  EXPECT_THROW(Plateau(1, {.factor = 2}), Error);
  EXPECT_THROW(Plateau(1, {.patience = -1}), Error);
}

}  // namespace
}  // namespace tiny
