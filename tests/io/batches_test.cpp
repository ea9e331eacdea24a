#include "io/batches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>

#include "base/error.h"
#include "tests/support/failure.h"

namespace tiny {
namespace {

BatchPlan plan_of(int64_t rows, int64_t batch, bool shuffled = true) {
  BatchPlan plan;
  plan.rows = rows;
  plan.batch = batch;
  plan.is_shuffled = shuffled;
  plan.seed = 7;
  return plan;
}

TEST(Batches, TheOrderIsOneOfTheRowsAndTheSameEverywhere) {
  const std::vector<int64_t> wanted{7, 6, 9, 2, 8, 4, 0, 3, 5, 1};
  EXPECT_EQ(epoch_order(plan_of(10, 4), 0), wanted);
  EXPECT_NE(epoch_order(plan_of(10, 4), 1), wanted);
  std::vector<int64_t> many = epoch_order(plan_of(1000, 4), 5);
  std::sort(many.begin(), many.end());
  std::vector<int64_t> rows(1000);
  std::iota(rows.begin(), rows.end(), 0);
  EXPECT_EQ(many, rows);
  EXPECT_EQ(epoch_order(plan_of(1000, 4, false), 3), rows);
}

// Every place has every row about as often as any other.
TEST(Batches, ShufflesAreEven) {
  constexpr int kRows = 8, kEach = 1000, kEpochs = kRows * kEach;
  int counts[kRows][kRows] = {};
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    const std::vector<int64_t> order = epoch_order(plan_of(kRows, 1), epoch);
    for (size_t place = 0; place < kRows; ++place) ++counts[place][order[place]];
  }
  for (const auto& of_place : counts)
    for (const int count : of_place) EXPECT_NEAR(count, kEach, 150);  // five deviations
}

class Loaders : public ::testing::TestWithParam<size_t> {
 protected:
  using Rows = std::vector<int64_t>;
  // Keeps the rows of each batch.
  BatchLoader::Gather gather() {
    return [this](std::span<const int64_t> rows) {
      if (fails_) throw Error(Status::OutOfMemory, "no room");
      const std::lock_guard lock(mutex_);
      made_.emplace_back(rows.begin(), rows.end());
      return BatchLoader::Memory();
    };
  }
  // The sizes of the batches up to the end of the epoch.
  static Rows sizes(BatchLoader& loader) {
    Rows all;
    while (const int64_t rows = loader.next({}).rows) all.push_back(rows);
    return all;
  }
  std::mutex mutex_;
  std::vector<Rows> made_;
  std::atomic<bool> fails_{false};
};

TEST_P(Loaders, EpochsEndAndBeginAgain) {
  BatchLoader loader(plan_of(10, 4), GetParam(), gather());
  for (int epoch = 0; epoch < 3; ++epoch) EXPECT_EQ(sizes(loader), (Rows{4, 4, 2}));
  EXPECT_EQ(loader.place().epoch, 3);
  BatchPlan dropping = plan_of(10, 4);
  dropping.drops_last = true;
  BatchLoader whole(dropping, GetParam(), gather());
  EXPECT_EQ(sizes(whole), (Rows{4, 4}));
  EXPECT_EQ(sizes(whole), (Rows{4, 4}));
  BatchLoader nothing(plan_of(0, 4), GetParam(), gather());
  EXPECT_EQ(sizes(nothing), Rows());
}

TEST_P(Loaders, SeekGoesToAnyPlace) {
  BatchLoader loader(plan_of(10, 4), GetParam(), gather());
  for (int round = 0; round < 50; ++round) {
    loader.seek({round, 2});
    EXPECT_EQ(sizes(loader), Rows{2});
    EXPECT_EQ(loader.place().epoch, round + 1);
  }
  loader.seek({5, 3});
  EXPECT_EQ(sizes(loader), Rows());
  testing::expect_failure(testing::failure_of([&] { loader.seek({5, 4}); }),
                          Status::InvalidArgument);
}

TEST_P(Loaders, AFailureIsToldAndTriedAgain) {
  fails_ = true;
  BatchLoader loader(plan_of(10, 4), GetParam(), gather());
  for (int i = 0; i < 3; ++i)
    testing::expect_failure(testing::failure_of([&] { loader.next({}); }), Status::OutOfMemory);
  fails_ = false;
  // What was tried before the failure went is told first.
  Rows all;
  while (true) {
    try {
      const int64_t rows = loader.next({}).rows;
      if (rows == 0) break;
      all.push_back(rows);
    } catch (const Error&) {
    }
  }
  EXPECT_EQ(all, (Rows{4, 4, 2}));
}

TEST_P(Loaders, TheyEndAtAnyTime) {
  for (int round = 0; round < 200; ++round) {
    BatchLoader loader(plan_of(100, 1), GetParam(), gather());
    for (int i = 0; i < round % 5; ++i) loader.next({});
  }
}

INSTANTIATE_TEST_SUITE_P(, Loaders, ::testing::Values(size_t{0}, size_t{1}, size_t{3}));

TEST_F(Loaders, NoMoreThanAskedForAreMadeAhead) {
  BatchLoader loader(plan_of(100, 1), 3, gather());
  const auto count = [&] {
    const std::lock_guard lock(mutex_);
    return made_.size();
  };
  for (int i = 0; i < 200 && count() < 3; ++i) usleep(1000);
  usleep(20000);
  EXPECT_EQ(count(), 3U);
}

TEST_F(Loaders, WhoWaitsCanBeStopped) {
  std::atomic<bool> is_over{false};
  StopSignal stop;
  stop.set_token(make_ref<CancelToken>());
  stop.token()->set();
  BatchLoader loader(plan_of(10, 1), 1, [&](std::span<const int64_t>) {
    while (!is_over) usleep(1000);
    return BatchLoader::Memory();
  });
  testing::expect_failure(testing::failure_of([&] { loader.next(stop); }), Status::Cancelled);
  is_over = true;
}

}  // namespace
}  // namespace tiny
