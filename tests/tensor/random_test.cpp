// Random numbers are those that their definitions say, and lie as their distributions do.
#include "tensor/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <set>
#include <utility>

#include "base/error.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/movement.h"
#include "tensor/program.h"
#include "tensor/run.h"
#include "tensor/value.h"
#include "tests/support/context.h"
#include "tests/support/failure.h"

namespace tiny {
namespace {

class RandomTest : public ::testing::Test {
 protected:
  template <typename T>
  static std::vector<T> values(Tensor t) {
    std::vector<T> out(static_cast<size_t>(element_count(t)));
    read(t, out.data(), std::ssize(out) * static_cast<int64_t>(sizeof(T)));
    return out;
  }
  Tensor words(const std::vector<uint32_t>& w) {
    return from_data(context_, kUInt32, {std::ssize(w)}, w.data(), std::ssize(w) * 4);
  }

  Ref<Context> context_ = testing::new_context("cpu");
};

// The known answers of Random123's kat_vectors.
TEST_F(RandomTest, TheBlockHasItsKnownAnswers) {
  const ThreefryWords made =
      threefry2x32({words({0, 0xffffffff, 0x13198a2e}), words({0, 0xffffffff, 0x03707344})},
                   {words({0, 0xffffffff, 0x243f6a88}), words({0, 0xffffffff, 0x85a308d3})});
  EXPECT_EQ(values<uint32_t>(made.first),
            (std::vector<uint32_t>{0x6b200159, 0x1cb996fc, 0xc4923a9c}));
  EXPECT_EQ(values<uint32_t>(made.second),
            (std::vector<uint32_t>{0x99ba4efe, 0xbb002be7, 0x483df7a0}));
}

// Random123's again, and what bits are made of.
TEST_F(RandomTest, ABlockIsHadAtAnyCounter) {
  const Tensor at = reshape(words({0x243f6a88, 0, 1, 0x85a308d3, 10, 11}), {2, 3});
  const std::vector<uint32_t> made =
      values<uint32_t>(random_at(words({0x13198a2e, 0x03707344}), at));
  EXPECT_EQ(made[0], 0xc4923a9cU);
  EXPECT_EQ(made[3], 0x483df7a0U);
  const std::vector<uint32_t> bits =
      values<uint32_t>(random_bits(words({0x13198a2e, 0x03707344}), 20));
  EXPECT_EQ((std::vector{made[1], made[2], made[4], made[5]}),
            (std::vector{bits[0], bits[1], bits[10], bits[11]}));
  EXPECT_THROW(random_at(words({1, 2}), words({1, 2, 3})), Error);
}

// jax.extend.random.threefry_2x32((0, 1337), arange(20)).
TEST_F(RandomTest, BitsAreJaxs) {
  EXPECT_EQ(values<uint32_t>(random_bits(words({0, 1337}), 20)),
            (std::vector<uint32_t>{2221762175, 1752107825, 653745012,  1967534793, 1395205442,
                                   3840423848, 2159346757, 603508235,  3319473678, 3363866483,
                                   3544324138, 1436466838, 2169858556, 2570072943, 2387150698,
                                   3678370550, 2911697663, 403244401,  2560861638, 1692360114}));
  EXPECT_EQ(values<uint32_t>(random_bits(words({0, 1337}), 0)).size(), 0U);
}

TEST_F(RandomTest, UniformNumbersFillTheirRange) {
  const Tensor key = random_key(context_, 5);
  const std::vector<float> x = values<float>(random_uniform(key, kFloat32, {100, 1000}));
  EXPECT_GE(*std::ranges::min_element(x), 0);
  EXPECT_LT(*std::ranges::max_element(x), 1);
  EXPECT_NEAR(std::accumulate(x.begin(), x.end(), 0.0) / 1e5, 0.5, 0.005);
  const std::vector<double> wide = values<double>(random_uniform(key, kFloat64, {99999}));
  EXPECT_NEAR(std::accumulate(wide.begin(), wide.end(), 0.0) / 99999, 0.5, 0.005);
  const std::vector<_Float16> half = values<_Float16>(random_uniform(key, kFloat16, {9999}));
  double sum = 0;
  for (const _Float16 h : half) sum += static_cast<double>(h);
  EXPECT_NEAR(sum / 9999, 0.5, 0.02);
}

TEST_F(RandomTest, NormalNumbersHaveTheirMoments) {
  const std::vector<float> x =
      values<float>(random_normal(random_key(context_, 6), kFloat32, {100000}));
  double mean = 0, square = 0, fourth = 0;
  for (const float v : x) {
    mean += v;
    square += static_cast<double>(v) * v;
    fourth += std::pow(v, 4);
  }
  EXPECT_NEAR(mean / 1e5, 0, 0.02);
  EXPECT_NEAR(square / 1e5, 1, 0.02);
  EXPECT_NEAR(fourth / 1e5, 3, 0.15);
}

TEST_F(RandomTest, IntegersAreAsLikelyAsEachOther) {
  const std::vector<int32_t> x =
      values<int32_t>(random_integers(random_key(context_, 7), kInt32, {70000}, -3, 4));
  std::vector<int> counts(7);
  for (const int32_t v : x) ++counts.at(static_cast<size_t>(v) + 3);
  for (const int n : counts) EXPECT_NEAR(n, 10000, 400);
  const std::vector<int64_t> wide = values<int64_t>(random_integers(
      random_key(context_, 8), kInt64, {1000}, -(int64_t{1} << 40), int64_t{1} << 40));
  EXPECT_TRUE(std::ranges::all_of(wide, [](int64_t v) { return std::abs(v) <= int64_t{1} << 40; }));
  EXPECT_GT(std::ranges::count_if(wide, [](int64_t v) { return v < 0; }), 400);
}

TEST_F(RandomTest, APermutationHasEveryNumberOnce) {
  std::vector<int64_t> x = values<int64_t>(random_permutation(random_key(context_, 9), 1000));
  EXPECT_FALSE(std::ranges::is_sorted(x));
  std::ranges::sort(x);
  for (int64_t i = 0; i < 1000; ++i) ASSERT_EQ(x[static_cast<size_t>(i)], i);
}

TEST_F(RandomTest, BernoulliIsTrueAsOftenAsItSays) {
  const Tensor p = full(context_, kFloat32, {50000}, 0.3);
  const std::vector<uint8_t> x = values<uint8_t>(random_bernoulli(random_key(context_, 10), p));
  EXPECT_NEAR(std::accumulate(x.begin(), x.end(), 0), 15000, 500);
}

// Of float64 to its own precision.
TEST_F(RandomTest, TruncatedNumbersStayWithinTheirBounds) {
  const std::vector<double> x =
      values<double>(random_truncated_normal(random_key(context_, 13), kFloat64, {20000}, -0.5, 1));
  EXPECT_GE(*std::ranges::min_element(x), -0.5);
  EXPECT_LE(*std::ranges::max_element(x), 1);
  const std::vector<double> u =
      values<double>(random_uniform(random_key(context_, 13), kFloat64, {20000}));
  const auto below = [](double v) { return std::erfc(-v / std::numbers::sqrt2) / 2; };
  for (size_t i = 0; i < x.size(); ++i)
    ASSERT_NEAR((below(x[i]) - below(-0.5)) / (below(1) - below(-0.5)), u[i], 1e-14);
  testing::expect_failure(testing::failure_of([&] {
                            random_truncated_normal(random_key(context_, 13), kFloat32, {4}, 1, 1);
                          }),
                          Status::InvalidArgument, {"from 1 to 1"});
}

TEST_F(RandomTest, PositionsComeAsOftenAsTheirWeightsSay) {
  constexpr int64_t kDraws = 40000;
  const double weights[] = {0, 3, 0, 1, 4, 0};
  const Tensor one = from_data(context_, kFloat64, {6}, weights, sizeof weights);
  const std::vector<int64_t> x =
      values<int64_t>(random_multinomial(random_key(context_, 14), one, kDraws, true));
  std::vector<int> counts(6);
  for (const int64_t v : x) ++counts.at(static_cast<size_t>(v));
  for (size_t i = 0; i < 6; ++i) EXPECT_NEAR(counts[i], weights[i] / 8 * kDraws, 400) << i;
  // Without replacement: the first of each row as often, none twice, those of weight 0 last.
  const Tensor rows = expand(one, to_shape({kDraws, 6}));
  const std::vector<int64_t> orders =
      values<int64_t>(random_multinomial(random_key(context_, 15), rows, 6, false));
  std::ranges::fill(counts, 0);
  for (size_t row = 0; row < orders.size(); row += 6) {
    ++counts.at(static_cast<size_t>(orders[row]));
    std::vector<int64_t> order(orders.begin() + static_cast<ptrdiff_t>(row),
                               orders.begin() + static_cast<ptrdiff_t>(row) + 6);
    ASSERT_EQ(std::set<int64_t>(order.begin() + 3, order.end()), (std::set<int64_t>{0, 2, 5}));
    ASSERT_EQ(std::set<int64_t>(order.begin(), order.begin() + 3), (std::set<int64_t>{1, 3, 4}));
  }
  for (size_t i = 0; i < 6; ++i) EXPECT_NEAR(counts[i], weights[i] / 8 * kDraws, 400) << i;
  testing::expect_failure(
      testing::failure_of([&] { random_multinomial(random_key(context_, 14), one, 7, false); }),
      Status::InvalidArgument, {"7 positions", "without replacement"});
}

TEST_F(RandomTest, DropoutKeepsTheMean) {
  const Tensor x = full(context_, kFloat16, {50000}, 2);
  const Tensor key = random_key(context_, 16);
  const std::vector<_Float16> y = values<_Float16>(dropout(key, x, 0.2));
  double sum = 0;
  for (const _Float16 v : y) {
    ASSERT_TRUE(v == 0 || v == 2.5) << static_cast<double>(v);
    sum += static_cast<double>(v);
  }
  EXPECT_NEAR(sum / 50000, 2, 0.02);
  EXPECT_EQ(values<_Float16>(dropout(key, x, 0)), values<_Float16>(x));
  EXPECT_EQ(values<_Float16>(dropout(key, x, 1)), std::vector<_Float16>(50000));
  testing::expect_failure(testing::failure_of([&] { dropout(key, x, 1.5); }),
                          Status::InvalidArgument, {"1.5", "0 to 1"});
}

// Large enough that all threads have a share.
TEST_F(RandomTest, AnyNumberOfThreadsHasTheSameNumbers) {
  const auto made = [](int64_t threads) {
    Flags flags = testing::flags_for("cpu");
    flags.threads = threads;
    const auto context = make_ref<Context>(flags);
    const Tensor key = random_key(context, 17);
    return std::pair{values<float>(random_normal(key, kFloat32, {301, 1000})),
                     values<float>(dropout(key, full(context, kFloat32, {299, 1000}, 1), 0.5))};
  };
  const auto one = made(1);
  EXPECT_EQ(made(2), one);
  EXPECT_EQ(made(3), one);
}

// A key that a program is given, and that its steps may write to.
TEST_F(RandomTest, ProgramsHaveTheSameNumbers) {
  const Tensor key = make_placeholder(context_, kUInt32, {2});
  const std::vector<Tensor> made{random_normal(key, kFloat32, {100}),
                                 cast(random_permutation(key, 50), kFloat32),
                                 dropout(key, full(context_, kFloat32, {70}, 1), 0.25)};
  const auto run = make_ref<TensorRun>(context_, compile_tensors(context_, {{key}}, made));
  for (const uint64_t seed : {19U, 20U}) {
    const Tensor now = random_key(context_, seed);
    run->set_input(0, now);
    run->execute();
    const std::vector<Tensor> want{random_normal(now, kFloat32, {100}),
                                   cast(random_permutation(now, 50), kFloat32),
                                   dropout(now, full(context_, kFloat32, {70}, 1), 0.25)};
    for (size_t i = 0; i < want.size(); ++i) {
      std::vector<float> got(static_cast<size_t>(element_count(want[i])));
      run->read_output(i, got.data());
      EXPECT_EQ(got, values<float>(want[i])) << i;
    }
  }
}

// Of Box and Muller's formula in float32, each step rounded correctly.
TEST_F(RandomTest, NormalNumbersAreWithinTwoUnitsOfTheirFormula) {
  constexpr int64_t kCount = 50000;
  const Tensor key = random_key(context_, 18);
  const std::vector<float> u = values<float>(random_uniform(key, kFloat32, {2 * kCount}));
  const std::vector<float> got = values<float>(random_normal(key, kFloat32, {kCount}));
  const auto rounded = [](double v) { return static_cast<float>(v); };
  double worst = 0;
  for (size_t i = 0; i < kCount; ++i) {
    const float angle = u[i] * static_cast<float>(2 * std::numbers::pi);
    const float logarithm = rounded(std::log(static_cast<double>(1 - u[kCount + i])));
    const float radius = rounded(std::sqrt(static_cast<double>(-2 * logarithm)));
    const float want = rounded(std::cos(static_cast<double>(angle))) * radius;
    const float near = std::abs(want);
    const double unit = static_cast<double>(std::nextafter(near, INFINITY) - near);
    worst = std::max(worst, std::abs(static_cast<double>(got[i] - want)) / unit);
  }
  EXPECT_LE(worst, 2);
}

TEST_F(RandomTest, SplitKeysGiveOtherNumbers) {
  const Tensor key = random_key(context_, 11);
  const std::vector<uint32_t> keys = values<uint32_t>(split_key(key, 3));
  EXPECT_EQ(keys.size(), 6U);
  EXPECT_NE(keys[0], keys[2]);
  testing::expect_failure(testing::failure_of([&] { random_bits(words({1, 2, 3}), 4); }),
                          Status::InvalidArgument, {"two uint32"});
  testing::expect_failure(testing::failure_of([&] { random_uniform(key, kInt32, {4}); }),
                          Status::DType, {"wanted floats"});
}

// The same bits on every device.
TEST_F(RandomTest, AllDevicesAgree) {
  const auto made = [](const std::string& device) {
    const Ref<Context> context = testing::new_context(device);
    return values<float>(random_uniform(random_key(context, 12), kFloat32, {101}));
  };
  const std::vector<float> want = made("cpu");
  for (const BackendInfo& backend : testing::computing_backends())
    EXPECT_EQ(made(backend.name), want);
}

}  // namespace
}  // namespace tiny
