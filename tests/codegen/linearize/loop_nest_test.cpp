// Which ranges are open or have a coordinate, and how instances are told apart.
#include "codegen/linearize/loop_nest.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "ir/build.h"
#include "tests/codegen/linearize/nest_kernel.h"

namespace tiny {
namespace {

using testing::NestKernel;

TEST(LoopNest, SortsRangesByKind) {
  NestKernel k;
  k.range(8, RangeKind::Thread);
  k.range(8, RangeKind::Loop);
  k.range(4, RangeKind::Upcast);
  k.range(2, RangeKind::Unroll);
  k.range(16, RangeKind::Vec);
  k.range(4, RangeKind::Dot);
  const LoopNest nest(k.kernel);
  EXPECT_EQ(nest.loops(), 0b000011u);
  EXPECT_EQ(nest.unrolled(), 0b001100u);
  EXPECT_EQ(nest.upcast(), 0b000100u);
  EXPECT_EQ(nest.lanes(), 0b010000u);
  EXPECT_EQ(nest.words(), 0b100000u);
  EXPECT_EQ(nest.open() | nest.fixed(), 0u);
  EXPECT_EQ(nest.state(4).kind, RangeState::Lane);
  EXPECT_EQ(nest.lanes_in(nest.lanes()), 16);
  EXPECT_EQ(nest.lanes_in(nest.loops()), 1);
}

TEST(LoopNest, KnowsAnInstanceByTheCoordinatesThatItDependsOn) {
  NestKernel k;
  const UOp loop = k.range(8, RangeKind::Loop);
  const UOp row = k.range(4, RangeKind::Upcast);
  const UOp column = k.range(4, RangeKind::Upcast);
  LoopNest nest(k.kernel);
  const UOp value = add(loop, row);
  const InstanceKey none = nest.key_of(value);
  nest.fix(2, 3);
  EXPECT_EQ(nest.key_of(value), none);
  nest.fix(1, 0);
  const InstanceKey first = nest.key_of(value);
  EXPECT_FALSE(first == none);
  nest.fix(1, 1);
  EXPECT_FALSE(nest.key_of(value) == first);
  EXPECT_FALSE(nest.key_of(add(value, column)) == nest.key_of(value));
  nest.fix(1, 0);
  EXPECT_EQ(nest.key_of(value), first);
  nest.release(1);
  EXPECT_EQ(nest.key_of(value), none);
}

// Only the iterations that peeling can write apart are told from each other.
TEST(LoopNest, TellsPeeledIterationsOfBothEndsApart) {
  NestKernel k;
  const UOp loop = k.range(1000, RangeKind::Loop);
  LoopNest nest(k.kernel);
  std::vector<InstanceKey> keys{nest.key_of(loop)};
  for (const int64_t at : {0, 1, 2, 997, 998, 999}) {
    nest.open_iteration(0, at);
    EXPECT_EQ(nest.open(), 1u);
    keys.push_back(nest.key_of(loop));
    nest.close(0);
    EXPECT_EQ(nest.open() | nest.fixed(), 0u);
  }
  for (size_t i = 0; i < keys.size(); ++i)
    for (size_t j = 0; j < i; ++j) EXPECT_FALSE(keys[i] == keys[j]) << i << " and " << j;
}

TEST(LoopNest, HasAnotherVersionForEveryNestOfLoops) {
  NestKernel k;
  k.range(8, RangeKind::Loop);
  k.range(4, RangeKind::Upcast);
  LoopNest nest(k.kernel);
  const uint64_t outside = nest.version();
  nest.fix(1, 2);
  nest.release(1);
  EXPECT_EQ(nest.version(), outside);
  nest.open_loop(0, 7, 1);
  EXPECT_EQ(nest.state(0).kind, RangeState::Open);
  EXPECT_EQ(nest.state(0).loop, 7u);
  const uint64_t inside = nest.version();
  EXPECT_NE(inside, outside);
  nest.close(0);
  EXPECT_NE(nest.version(), inside);
  EXPECT_NE(nest.version(), outside);
}

TEST(LoopNest, CountsWhatHasNoCoordinateAsPending) {
  NestKernel k;
  const UOp loop = k.range(8, RangeKind::Loop);
  const UOp row = k.range(4, RangeKind::Upcast);
  const UOp lane = k.range(16, RangeKind::Vec);
  LoopNest nest(k.kernel);
  const RangeSet all = nest.free_of(add(add(loop, row), lane));
  EXPECT_EQ(all, 0b111u);
  EXPECT_EQ(nest.pending_in(all), 0b110u);
  nest.fix(1, 0);
  EXPECT_EQ(nest.pending_in(all), 0b100u);
}

TEST(LoopNest, WalksInstancesTheLastRangeFastest) {
  NestKernel k;
  const UOp row = k.range(2, RangeKind::Upcast);
  const UOp column = k.range(3, RangeKind::Unroll);
  LoopNest nest(k.kernel);
  const UOp value = neg(add(row, column));
  std::vector<std::pair<int64_t, int64_t>> walked;
  nest.for_each_instance(nest.instances_of(value, 0), [&](size_t instance) {
    EXPECT_EQ(instance, walked.size());
    walked.emplace_back(nest.state(0).value, nest.state(1).value);
  });
  const std::vector<std::pair<int64_t, int64_t>> wanted{{0, 0}, {0, 1}, {0, 2},
                                                        {1, 0}, {1, 1}, {1, 2}};
  EXPECT_EQ(walked, wanted);
  EXPECT_EQ(nest.fixed(), 0u);
}

TEST(LoopNest, LeavesOutWhatATileDoesNotHave) {
  NestKernel k;
  k.range(2, RangeKind::Upcast);
  k.range(4, RangeKind::Upcast);
  LoopNest nest(k.kernel);
  nest.set_limit(0b10, 3);
  std::vector<size_t> instances;
  nest.for_each_instance(0b11, [&](size_t instance) { instances.push_back(instance); });
  EXPECT_EQ(instances, (std::vector<size_t>{0, 1, 2, 4, 5, 6}));
}

TEST(LoopNest, RefusesMoreInstancesThanKeysTellApart) {
  NestKernel k;
  for (int i = 0; i < 25; ++i) k.range(63, RangeKind::Upcast);
  try {
    const LoopNest nest(k.kernel);
    FAIL() << "25 ranges of 63 steps have more coordinates than two numbers";
  } catch (const Error& e) {
    EXPECT_EQ(e.status(), Status::Limit) << e.what();
  }
}

}  // namespace
}  // namespace tiny
