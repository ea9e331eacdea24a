// Reductions in pieces, on pools of several sizes: the reference's values, and the same bits in
// every run.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>

#include "tensor/activation.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"
#include "tensor/value.h"
#include "tests/reference/reference.h"
#include "tests/support/context.h"
#include "tests/support/tensors.h"

namespace tiny {
namespace {

using testing::Floats;

Ref<Context> with_threads(int64_t threads) {
  Flags flags = testing::flags_for("cpu");
  flags.threads = threads;
  return make_ref<Context>(flags);
}

Tensor data(const Ref<Context>& context, const Ints& shape) {
  Floats values;
  for (int64_t i = 0; i < product(to_shape(shape)).value(); ++i)
    values.push_back(static_cast<float>((i * 7919 + 13) % 1009 - 504) / 256);
  return testing::floats(context, values, shape);
}

using Make = std::function<Tensor(const Ref<Context>&)>;

// Near the reference's values with any number of threads; the same bits each time.
void expect_near_the_reference(const Make& make, double tolerance) {
  const reference::Values want = reference::evaluate(make(with_threads(1)).node());
  int64_t launches_of_one = 0;
  for (const int64_t threads : {1, 2, 3, 8}) {
    const Ref<Context> context = with_threads(threads);
    const Floats first = testing::floats_of(make(context));
    ASSERT_EQ(first.size(), want.real.size());
    for (size_t i = 0; i < first.size(); ++i)
      ASSERT_NEAR(first[i], want.real[i], tolerance) << i << " with " << threads << " threads";
    const int64_t launches = context->counters().launches;
    if (threads == 1) launches_of_one = launches;
    EXPECT_EQ(launches > launches_of_one, threads > 1) << threads;
    for (int again = 0; again < 2; ++again) {
      const Floats next = testing::floats_of(make(context));
      EXPECT_EQ(std::memcmp(first.data(), next.data(), first.size() * 4), 0) << threads;
    }
  }
}

TEST(SplitReductions, SumsOfAllElements) {
  expect_near_the_reference(
      [](const Ref<Context>& c) { return sum(exp(data(c, {262'144})), {0}, false); }, 5);
  // A length without divisors.
  expect_near_the_reference(
      [](const Ref<Context>& c) { return mean(exp(data(c, {262'147})), {0}, false); }, 1e-4);
}

TEST(SplitReductions, TheGreatestAndTheLeast) {
  expect_near_the_reference(
      [](const Ref<Context>& c) { return max(neg(exp(data(c, {262'147}))), {0}, false); }, 1e-5);
  expect_near_the_reference(
      [](const Ref<Context>& c) { return min(exp(data(c, {100'000, 3})), {0}, true); }, 1e-5);
}

TEST(SplitReductions, SkinnyProducts) {
  expect_near_the_reference(
      [](const Ref<Context>& c) { return matmul(data(c, {2, 300'000}), data(c, {300'000, 2})); },
      40);
  expect_near_the_reference(
      [](const Ref<Context>& c) {
        return relu(matmul(data(c, {1, 240'000}), data(c, {240'000, 3})));
      },
      40);
}

TEST(SplitReductions, RowsThatAreWholeTensors) {
  expect_near_the_reference([](const Ref<Context>& c) { return softmax(data(c, {1, 300'000}), 1); },
                            1e-6);
  expect_near_the_reference(
      [](const Ref<Context>& c) {
        const Tensor x = exp(data(c, {1, 300'000}));
        const Tensor centred = sub(x, mean(x, {1}, true));
        return mul(centred, rsqrt(mean(mul(centred, centred), {1}, true)));
      },
      1e-4);
}

TEST(SplitReductions, AResultIsComputedOnce) {
  const Ref<Context> context = with_threads(4);
  const Tensor total = sum(data(context, {1'200'000}), {0}, true);
  const Floats before = testing::floats_of(total);
  const int64_t launches = context->counters().launches;
  EXPECT_EQ(testing::floats_of(total), before);
  EXPECT_EQ(context->counters().launches, launches);
}

// The parts of these long sums stand in their destination, beside what it holds before.
TEST(SplitReductions, WhatIsTakenOverIsReadBeforeItIsWritten) {
  for (const Ints& rows : {Ints{64}, Ints{1, 64}, Ints{8, 8}, Ints{64, 1}}) {
    const auto network = [](const Tensor& x) {
      const Ref<Context>& c = x.context_ref();
      const Tensor wide = matmul(x, permute(data(c, {512, 128}), {1, 0}));
      return sum(add(x, matmul(wide, permute(data(c, {128, 512}), {1, 0}))), {-1}, false);
    };
    Ints shape = rows;
    shape.push_back(128);
    const Ref<Context> context = with_threads(2);
    const Tensor table = data(context, {64, 128});
    Tensor index = reshape(arange(context, kInt64, 64), to_shape(rows));
    Tensor* const all[] = {&index};
    realize(all);
    // The rows of a table are a kernel's result, whose memory the sum may have.
    const Floats got = testing::floats_of(network(gather(table, index)));
    const Floats want = testing::floats_of(network(data(context, shape)));
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], 1) << i;
  }
}

TEST(SplitReductions, WhatIsUpdatedIsReadBeforeItIsWritten) {
  for (const Ints& seen : {Ints{64, 128}, Ints{8, 8, 128}, Ints{64, 2, 64}, Ints{8192}}) {
    const auto next = [&](const Tensor& x) {
      const Ref<Context>& c = x.context_ref();
      const Tensor product = matmul(data(c, {64, 1024}), data(c, {1024, 128}));
      return reshape(add(reshape(x, to_shape(seen)), reshape(product, to_shape(seen))), {64, 128});
    };
    const Ref<Context> context = with_threads(2);
    Tensor x = exp(data(context, {64, 128}));
    Tensor* const all[] = {&x};
    realize(all);
    const Floats want =
        testing::floats_of(next(testing::floats(context, testing::floats_of(x), {64, 128})));
    assign(x, next(x));
    const Floats got = testing::floats_of(x);
    for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-2) << i;
  }
}

TEST(SplitReductions, WhatIsWrittenIsReadInPieces) {
  const Ref<Context> context = with_threads(4);
  Tensor x = full(context, kFloat32, {1'200'000}, 1);
  Tensor* const all[] = {&x};
  realize(all);
  const Tensor before = sum(x, {0}, false);
  assign(x, add(x, mul(before, full(context, kFloat32, {}, 1.0 / 1'200'000))));
  EXPECT_EQ(testing::floats_of(sum(x, {0}, false)).front(), 2'400'000);
  EXPECT_EQ(testing::floats_of(before).front(), 1'200'000);
}

}  // namespace
}  // namespace tiny
