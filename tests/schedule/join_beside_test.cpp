// Kernels with several stores: which kernels are joined side by side, and what they compute.
#include "schedule/join_beside.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/realize.h"
#include "tensor/activation.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/joining.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"
#include "tensor/value.h"
#include "tests/reference/reference.h"
#include "tests/support/graph_test.h"

namespace tiny {
namespace {

class JoinBeside : public testing::GraphTest {
 protected:
  Tensor number(double value) { return Tensor::weak_float(context_, value); }

  // How many stores each kernel has that computes these tensors.
  static std::vector<size_t> stores(const std::vector<Tensor>& tensors,
                                    const JoinSettings& settings = {}) {
    std::vector<UOp> wanted;
    for (const Tensor& t : tensors) wanted.push_back(t.node());
    std::vector<size_t> counts;
    for (const ScheduledKernel& k : make_schedule(wanted, avx512_machine(), true, settings).kernels)
      counts.push_back(k.stores.size());
    return counts;
  }
  using Counts = std::vector<size_t>;

  // After `stores`: nothing may be computed before.
  void expect_values(std::vector<Tensor> tensors) {
    std::vector<reference::Values> wanted;
    std::vector<Tensor*> all;
    for (const Tensor& t : tensors) wanted.push_back(reference::evaluate(t.node()));
    for (Tensor& t : tensors) all.push_back(&t);
    realize(all);
    for (size_t i = 0; i < tensors.size(); ++i) {
      std::vector<std::byte> got(
          static_cast<size_t>(product(tensors[i].shape()).value() * tensors[i].dtype().bytes()));
      read(tensors[i], got.data(), std::ssize(got));
      EXPECT_EQ(reference::difference(wanted[i], got.data()), "") << "tensor " << i;
    }
  }
};

// Both moments and the parameter are stored by one kernel, which reads the gradient once.
TEST_F(JoinBeside, AStepOfAnOptimizerIsOneKernel) {
  const Tensor p = given({30, 40}), g = given({30, 40}), m = given({30, 40}), v = given({30, 40});
  const Tensor m1 = add(mul(m, number(0.9)), mul(g, number(0.1)));
  const Tensor v1 = add(mul(v, number(0.99)), mul(mul(g, g), number(0.01)));
  const Tensor root = add(sqrt(abs(v1)), number(1e-3));
  const Tensor p1 = sub(p, mul(number(0.01), div(m1, root)));
  EXPECT_EQ(stores({m1, v1, p1}), Counts{3});
  expect_values({m1, v1, p1});
}

// The same in place: each is read before it is overwritten.
TEST_F(JoinBeside, AStepInPlaceIsOneKernelWithoutCopies) {
  Tensor p = given({30, 40}), m = given({30, 40});
  const Tensor g = given({30, 40});
  assign(m, add(mul(m, number(0.5)), g));
  assign(p, sub(p, mul(m, number(0.25))));
  const auto before = context_->counters();
  expect_values({p, m});
  EXPECT_EQ(context_->counters().launches - before.launches, 1);
  EXPECT_EQ(context_->counters().copies, before.copies);
}

// What one kernel reads before another overwrites it elsewhere stays in a kernel of its own.
TEST_F(JoinBeside, AReadOfOtherElementsThanAreOverwrittenIsApart) {
  Tensor p = given({30, 40});
  const Tensor turned = mul(flip(p, {1}), number(2));
  assign(p, add(p, number(1)));
  const auto before = context_->counters();
  expect_values({turned, p});
  EXPECT_EQ(context_->counters().launches - before.launches, 2);
}

TEST_F(JoinBeside, AValueAndItsStatisticsAreOneKernel) {
  const Tensor x = given({64, 96});
  const Tensor mean = div(sum(x, {1}, true), number(96));
  const Tensor centred = sub(x, mean);
  const Tensor variance = div(sum(mul(centred, centred), {1}, true), number(96));
  const Tensor y = div(centred, sqrt(add(variance, number(1e-5))));
  EXPECT_EQ(stores({y, mean, variance}), Counts{3});
  expect_values({y, mean, variance});
}

TEST_F(JoinBeside, StatisticsOfTheSameRowsAreOneKernel) {
  const Tensor x = given({64, 96});
  for (const int64_t axis : {0, 1}) {
    const Tensor total = sum(x, {axis}, true), squares = sum(mul(x, x), {axis}, true);
    EXPECT_EQ(stores({total, squares}), Counts{2}) << axis;
    expect_values({total, squares});
  }
}

// Sums that need nothing of each other walk what they read in one loop.
TEST_F(JoinBeside, IndependentSumsShareTheirLoop) {
  const Tensor x = given({64, 96});
  const Tensor total = sum(x, {1}), squares = sum(mul(x, x), {1});
  std::vector<UOp> wanted;
  for (const Tensor& t : {total, squares}) wanted.push_back(t.node());
  const Schedule schedule = make_schedule(wanted, avx512_machine());
  ASSERT_EQ(schedule.kernels.size(), 1U);
  const auto& ranges = schedule.kernels.front().kernel.ranges;
  EXPECT_EQ(std::ranges::count_if(ranges, &KernelRange::reduced), 1);
}

TEST_F(JoinBeside, WhatAnActivationIsMadeOfIsStoredBesideIt) {
  const Tensor z = add(matmul(given({48, 64}), given({64, 32})), given({32}));
  const Tensor y = relu(z);
  EXPECT_EQ(stores({z, y}), Counts{2});
  expect_values({z, y});
}

// A part of a concatenation that reads what another part reads.
TEST_F(JoinBeside, PartsOfAConcatenationAreStoredTogether) {
  const Tensor x = given({8, 60});
  const std::vector<Tensor> parts{add(x, number(1)), mul(x, number(2))};
  const Tensor y = concat(parts, 1);
  EXPECT_EQ(stores({y}), Counts{2});
  expect_values({y});
}

// Products want register tiles of their own; a product and its bias's gradient too.
TEST_F(JoinBeside, ProductsOfOneValueAreApart) {
  const Tensor x = given({32, 64});
  EXPECT_EQ(stores({matmul(x, given({64, 64})), matmul(x, given({64, 64}))}), (Counts{1, 1}));
  const Tensor slope = given({32, 48});
  EXPECT_EQ(stores({matmul(transpose(x, 0, 1), slope), sum(slope, {0}, true)}), (Counts{1, 1}));
}

// A product's tiles would break the streams of an optimizer's step into pieces of rows.
TEST_F(JoinBeside, AStepIsBesideItselfAndNotInTheProduct) {
  const Tensor g = matmul(given({512, 4}), given({4, 512}));
  const Tensor m = given({512, 512}), v = given({512, 512}), p = given({512, 512});
  const Tensor m1 = add(mul(m, number(0.5)), g);
  const Tensor v1 = add(mul(v, number(0.5)), mul(g, g));
  const Tensor p1 = sub(p, mul(m1, v1));
  EXPECT_EQ(stores({m1, v1, p1}), (Counts{1, 3}));
  expect_values({m1, v1, p1});
}

// The value is needed at once, before another of its size; in one kernel it would wait.
TEST_F(JoinBeside, NothingLargeIsKeptForALaterKernel) {
  const Tensor s = given({64, 1});
  const auto rows = [&](int64_t columns) {
    const Tensor large = matmul(given({64, 8}), given({8, columns}));
    return mul(sum(mul(large, large), {1}, true), s);
  };
  const Tensor first = rows(256);
  const Tensor second = rows(128);
  const std::vector<size_t> counts = stores({first, second});
  EXPECT_EQ(std::ranges::count(counts, 1U), std::ssize(counts));
  expect_values({first, second});
}

// What nobody needs yet is not made before them.
TEST_F(JoinBeside, ALaterKernelComesToTheFirst) {
  const Tensor x = given({64, 64});
  const Tensor first = add(x, number(1));
  const Tensor made = matmul(given({64, 8}), given({8, 64}));
  const Tensor both = matmul(first, made);
  const Tensor second = mul(x, number(3));
  EXPECT_EQ(stores({first, made, both, second}), (Counts{2, 1, 1}));
  expect_values({first, made, both, second});
}

// What is read along other axes is not read over equal ranges.
TEST_F(JoinBeside, StoresThatLieDifferentlyAreApart) {
  const Tensor x = given({32, 48});
  EXPECT_EQ(stores({add(x, number(1)), mul(transpose(x, 0, 1), number(2))}), (Counts{1, 1}));
}

// x -> sum -> y needs all of x first: x and y cannot be one kernel, whatever both read.
TEST_F(JoinBeside, KernelsWithAnotherBetweenThemAreApart) {
  const Tensor x = given({40, 50});
  const Tensor y = exp(x);
  const Tensor product = matmul(transpose(y, 0, 1), y);
  const Tensor scaled = mul(x, sum(product, {0, 1}, true));
  const std::vector<size_t> counts = stores({y, scaled});
  EXPECT_EQ(std::ranges::count(counts, 1U), std::ssize(counts));
  expect_values({y, scaled});
}

TEST_F(JoinBeside, AFlippedJoinIsApart) {
  const Tensor x = given({64, 96});
  const std::vector<Tensor> both{add(x, number(1)), mul(x, number(3))};
  std::vector<JoinTrial> trials;
  EXPECT_EQ(stores(both, {{}, &trials, nullptr}), Counts{2});
  ASSERT_EQ(trials.size(), 1U);
  EXPECT_TRUE(trials[0].joined);
  EXPECT_LE(trials[0].cost.paid(), trials[0].cost.saved());
  EXPECT_EQ(stores(both, {{trials[0].number}, nullptr, nullptr}), (Counts{1, 1}));
}

}  // namespace
}  // namespace tiny
