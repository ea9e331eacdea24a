// What differs in sizes alone is compiled once, where it runs once: with the elements that kernels
// of known sizes give.
#include "engine/shared_sizes.h"

#include <gtest/gtest.h>

#include "engine/context.h"
#include "engine/observe.h"
#include "engine/realize.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/program.h"
#include "tensor/reduce.h"
#include "tensor/value.h"
#include "tests/reference/reference.h"

namespace tiny {
namespace {

class SharedSizesTest : public ::testing::TestWithParam<const char*> {
 protected:
  SharedSizesTest() {
    Flags flags = Flags::from_environment(nullptr);
    flags.device = GetParam();
    flags.cache = 0;
    context_ = make_ref<Context>(std::move(flags));
  }
  Tensor make(const Ints& shape, float first = 1) {
    std::vector<float> values;
    for (int64_t i = 0; i < product(to_shape(shape)).value(); ++i)
      values.push_back(first + 0.5F * static_cast<float>(i % 41));
    return from_data(context_, kFloat32, shape, values.data(), std::ssize(values) * 4);
  }
  // Computes all together, and holds each against the oracle.
  void check(std::vector<Tensor> tensors) {
    std::vector<reference::Values> want;
    std::vector<Tensor*> all;
    for (Tensor& t : tensors) {
      want.push_back(reference::evaluate(t.node()));
      all.push_back(&t);
    }
    realize(all);
    for (size_t i = 0; i < tensors.size(); ++i) {
      std::string bytes(static_cast<size_t>(element_count(tensors[i]) * tensors[i].dtype().bytes()),
                        '\xAA');
      read(tensors[i], bytes.data(), std::ssize(bytes));
      EXPECT_EQ(reference::difference(want[i], bytes.data()), "") << i;
    }
  }
  int64_t compiled() { return context_->observer().compiles().compiled; }
  int64_t launches() { return context_->counters().launches; }

  Ref<Context> context_;
};

INSTANTIATE_TEST_SUITE_P(Devices, SharedSizesTest, ::testing::Values("cpu", "interp"));

TEST_P(SharedSizesTest, OneKernelForAllSizes) {
  std::vector<Tensor> sums;
  for (const Ints& shape : std::vector<Ints>{{5}, {3, 7}, {2, 3, 64}, {1000}, {2, 8192}, {16}})
    sums.push_back(add(make(shape), make(shape, -3)));
  check(sums);
  EXPECT_EQ(compiled(), 1);
  EXPECT_EQ(launches(), 6);
}

TEST_P(SharedSizesTest, OperandsOfOneElementAndOtherOrders) {
  std::vector<Tensor> products;
  for (const int64_t n : {4, 9, 33, 70, 128}) products.push_back(mul(make({n}), make({1})));
  check(products);
  EXPECT_EQ(compiled(), 1);
  std::vector<Tensor> turned;  // their rows lie apart: two loops each
  for (const int64_t n : {4, 9, 33, 70, 128})
    turned.push_back(add(permute(make({n, 3}), {1, 0}), make({3, n})));
  check(turned);
  EXPECT_EQ(compiled(), 6);
}

TEST_P(SharedSizesTest, WhatIsKeptHasCodeOfItsSize) {
  std::vector<Tensor> few{neg(make({3})), neg(make({4})), neg(make({5}))};
  check(few);
  EXPECT_EQ(compiled(), 3);
  std::vector<Tensor> sums;
  for (const int64_t n : {4, 9, 33, 70, 128}) sums.push_back(sum(make({n}), {0}, false));
  check(sums);
  EXPECT_EQ(compiled(), 8);
  std::vector<Tensor> large;
  for (const int64_t n : {20000, 20001, 20002, 20003}) large.push_back(neg(make({n})));
  check(large);
  EXPECT_EQ(compiled(), 12);
}

// What the shared kernels store is in the arena, where others read it.
TEST_P(SharedSizesTest, ValuesBetweenKernels) {
  std::vector<Tensor> ends;
  for (const int64_t n : {3, 10, 50, 200, 900}) {
    const Tensor row = contiguous(add(make({1, n}), make({1, n}, 2)));
    ends.push_back(matmul(row, make({n, 8})));
  }
  check(ends);
  EXPECT_EQ(launches(), 10);
  EXPECT_EQ(compiled(), 6);
}

// The same structure again is the same plan, on other data.
TEST_P(SharedSizesTest, PlansAreFoundAgain) {
  for (int round = 0; round < 2; ++round) {
    std::vector<Tensor> sums;
    for (const int64_t n : {4, 9, 33, 70, 128})
      sums.push_back(add(make({n}, static_cast<float>(round)), make({n})));
    check(sums);
  }
  EXPECT_EQ(compiled(), 1);
  EXPECT_EQ(context_->observer().compiles().plans_cached, 1);
}

}  // namespace
}  // namespace tiny
