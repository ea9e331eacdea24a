// A graph of a structure that came before is neither scheduled nor compiled again.
#include "engine/plan_cache.h"
#include "engine/observe.h"

#include <gtest/gtest.h>

#include "engine/context.h"
#include "engine/realize.h"
#include "tensor/activation.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"
#include "tensor/value.h"
#include "tests/reference/random_graph.h"
#include "tests/reference/reference.h"

namespace tiny {
namespace {

Ref<Context> make_context(int64_t plans) {
  Flags flags = Flags::from_environment(nullptr);
  flags.device = "interp";
  flags.cache_plans = plans;
  return make_ref<Context>(std::move(flags));
}

class PlanCacheTest : public ::testing::Test {
 protected:
  Tensor make(float first, const Ints& shape) {
    std::vector<float> values;
    for (int64_t i = 0; i < product(to_shape(shape)).value(); ++i)
      values.push_back(first + static_cast<float>(i));
    return from_data(context_, kFloat32, shape, values.data(), std::ssize(values) * 4);
  }
  // The elements, which are those that the oracle gives.
  void check(Tensor t) {
    const reference::Values want = reference::evaluate(t.node());
    std::string bytes(static_cast<size_t>(element_count(t) * t.dtype().bytes()), '\xAA');
    read(t, bytes.data(), std::ssize(bytes));
    EXPECT_EQ(reference::difference(want, bytes.data()), "");
  }
  int64_t found() { return context_->observer().compiles().plans_cached; }
  int64_t compiled() { return context_->observer().compiles().compiled; }

  Ref<Context> context_ = make_context(64);
};

TEST_F(PlanCacheTest, TheSameExpressionOnOtherDataIsFound) {
  for (int i = 0; i < 4; ++i) {
    const Tensor a = make(static_cast<float>(i), {4, 6});
    const Tensor b = make(static_cast<float>(-3 * i), {6, 5});
    check(softmax(matmul(a, b), 1));
    EXPECT_EQ(found(), i);
  }
}

TEST_F(PlanCacheTest, ExpressionsThatDifferAreNot) {
  const auto expression = [&](const Ints& shape, DType dtype, double factor, int64_t axis) {
    check(
        sum(mul(cast(make(1, shape), dtype), full(context_, dtype, to_shape({}), factor)), {axis}));
  };
  expression({4, 6}, kFloat32, 2, 1);
  expression({6, 4}, kFloat32, 2, 1);
  expression({4, 6}, kInt32, 2, 1);
  expression({4, 6}, kFloat32, 3, 1);
  expression({4, 6}, kFloat32, 2, 0);
  EXPECT_EQ(found(), 0);
  expression({4, 6}, kFloat32, 3, 1);
  EXPECT_EQ(found(), 1);
}

TEST_F(PlanCacheTest, WhichOperandsAreOneMatters) {
  const Tensor a = make(0, {8});
  const Tensor b = make(5, {8});
  check(mul(a, b));
  check(mul(b, b));
  EXPECT_EQ(found(), 0);
  check(mul(make(1, {8}), make(2, {8})));
  EXPECT_EQ(found(), 1);
}

TEST_F(PlanCacheTest, AResultIsALeafLikeAnyOther) {
  Tensor x = make(1, {8});
  for (int i = 0; i < 5; ++i) {
    x = mul(add(x, make(static_cast<float>(i), {8})), make(0.5F, {8}));
    check(x);
  }
  EXPECT_GE(found(), 3);
}

TEST_F(PlanCacheTest, WritesAreScheduledEachTime) {
  for (int i = 0; i < 3; ++i) {
    Tensor a = make(1, {8});
    assign(a, mul(a, make(static_cast<float>(i), {8})));
    check(a);
  }
  EXPECT_EQ(found(), 0);
}

TEST_F(PlanCacheTest, ThePlansUsedLeastRecentlyGo) {
  context_ = make_context(2);
  const auto ask = [&](int64_t n) { check(neg(make(0, {n}))); };
  for (const int64_t n : {3, 4, 3, 5, 3}) ask(n);
  EXPECT_EQ(found(), 2);
  EXPECT_EQ(context_->plans().size(), 2U);
  ask(4);  // went for 5
  EXPECT_EQ(found(), 2);
}

TEST_F(PlanCacheTest, NoneAreKeptIfSoWished) {
  context_ = make_context(0);
  for (int i = 0; i < 3; ++i) check(neg(make(static_cast<float>(i), {3})));
  EXPECT_EQ(found(), 0);
}

TEST_F(PlanCacheTest, RandomGraphsOnOtherDataHaveTheOraclesValues) {
  context_ = make_context(1000);
  for (uint64_t seed = 1; seed <= 150; ++seed)
    for (const uint64_t data : {uint64_t{1}, uint64_t{2}}) {
      testing::GraphOptions options;
      options.steps = static_cast<int64_t>(2 + seed % 9);
      options.data_seed = data;
      testing::RandomGraph graph(context_, seed, options);
      for (const Tensor& t : graph.make()) check(t);
      if (HasFailure()) FAIL() << "seed " << seed << "\n" << graph.story();
    }
  EXPECT_GT(found(), 150);
}

}  // namespace
}  // namespace tiny
