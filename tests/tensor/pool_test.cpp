// Where the greatest elements of windows lie, in all of the input.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "base/text.h"
#include "tensor/window.h"
#include "tests/support/context.h"
#include "tests/support/failure.h"
#include "tests/support/tensors.h"

namespace tiny {
namespace {

using testing::expect_failure;
using testing::failure_of;
using testing::Floats;
using testing::floats;
using testing::floats_of;
using testing::ints_of;

TEST(Pool, PositionsAreOfTheWholeInput) {
  const Window window{.strides = {2, 2}, .kernel = {2, 2}};
  for (const char* device : {"cpu", "interp"}) {
    const Ref<Context> context = testing::new_context(device);
    // Two channels of 2 rows by 4 columns.
    const Tensor x =
        floats(context, {0, 1, 9, 0, 8, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 6}, {1, 2, 2, 4});
    EXPECT_EQ(ints_of(max_pool_indices(x, window)), (Ints{4, 2, 1, 7}));
    EXPECT_EQ(ints_of(max_pool_positions(x, window)), (Ints{4, 2, 8 + 1, 8 + 7}));
    // Row r and column k are place k * 2 + r.
    EXPECT_EQ(ints_of(max_pool_positions(x, window, true)), (Ints{1, 4, 8 + 2, 8 + 7}));
  }
}

// What each window of a row has, tap by tap.
struct Pooled {
  Floats greatest, mean, norm;
  Ints place;
};

Pooled pooled(const Floats& x, const Window& w, int64_t count) {
  const auto size = std::ssize(x);
  const int64_t kernel = w.kernel[0], stride = w.strides[0], step = w.dilations[0];
  Pooled out;
  for (int64_t i = 0; i < count; ++i) {
    float greatest = -INFINITY, sum = 0, squares = 0;
    int64_t inside = 0, place = size;
    for (int64_t k = 0; k < kernel; ++k) {
      const int64_t at = i * stride - w.before[0] + k * step;
      inside += at >= (w.count_include_pad ? -w.before[0] : 0) &&
                at < size + (w.count_include_pad ? w.after[0] : 0);
      if (at < 0 || at >= size) continue;
      const float value = x[static_cast<size_t>(at)];
      if (value > greatest) place = at;
      greatest = std::max(greatest, value);
      sum += value;
      squares += value * value;
    }
    out.greatest.push_back(greatest);
    out.mean.push_back(inside == 0 ? NAN : sum / static_cast<float>(inside));
    out.norm.push_back(std::sqrt(squares));
    out.place.push_back(place);
  }
  return out;
}

void expect_near(const Floats& got, const Floats& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_TRUE(std::isnan(want[i]) || std::abs(got[i] - want[i]) < 1e-5F)
        << "window " << i << ": " << got[i] << " for " << want[i];
}

// Windows that are larger than what they lie over, before it, behind it and beside it.
TEST(Pool, WindowsMayReachOverTheInput) {
  const Ref<Context> context = testing::new_context("interp");
  std::mt19937 random(5);
  const auto from = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int trial = 0; trial < 60; ++trial) {
    Floats values(static_cast<size_t>(from(1, 9)));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 7 % 11) - 5;
    const Window window{.strides = {from(1, 5)},
                        .dilations = {from(1, 4)},
                        .before = {from(0, 30)},
                        .after = {from(0, 30)},
                        .kernel = {from(1, 24)},
                        .ceil_mode = from(0, 1) != 0,
                        .count_include_pad = from(0, 1) != 0};
    const int64_t size = std::ssize(values) + window.before[0] + window.after[0];
    if (window.dilations[0] * (window.kernel[0] - 1) + 1 > size) continue;
    const Tensor x = floats(context, values, {1, 1, std::ssize(values)});
    const Floats greatest = floats_of(max_pool(x, window));
    const Pooled want = pooled(values, window, std::ssize(greatest));
    EXPECT_EQ(greatest, want.greatest);
    expect_near(floats_of(avg_pool(x, window)), want.mean);
    expect_near(floats_of(lp_pool(x, window, 2)), want.norm);
    EXPECT_EQ(ints_of(max_pool_indices(x, window)), want.place);
  }
}

// What is padding alone is neither kept nor gone through.
TEST(Pool, WindowsThatReachFarTakeNoMemory) {
  for (const char* device : {"cpu", "interp"}) {
    Flags flags = testing::flags_for(device);
    flags.memory_limit = 1 << 20;
    flags.time_limit = 20'000;
    const Ref<Context> context = make_ref<Context>(flags);
    const Tensor x = floats(context, {3, -1, 2, 5}, {1, 1, 4});
    const int64_t far = 1 << 24;
    for (const Window& window :
         {Window{.before = {far}, .after = {far}, .kernel = {2 * far}},
          Window{.strides = {far}, .before = {far}, .after = {far}, .kernel = {far}},
          Window{.dilations = {far}, .before = {far}, .after = {far}, .kernel = {3}}}) {
      const ::testing::ScopedTrace trace(__FILE__, __LINE__, cat("kernel ", window.kernel[0]));
      const Floats greatest = floats_of(max_pool(x, window));
      EXPECT_EQ(*std::ranges::max_element(greatest), 5);
      EXPECT_EQ(floats_of(avg_pool(x, window)).size(), greatest.size());
      EXPECT_EQ(floats_of(lp_pool(x, window, 1)).size(), greatest.size());
      EXPECT_EQ(ints_of(max_pool_indices(x, window)).size(), greatest.size());
    }
  }
}

TEST(Pool, NormsHaveAPowerAboveZero) {
  const Ref<Context> context = testing::new_context("interp");
  const Tensor x = floats(context, {1, 2, 3, 4}, {1, 1, 4});
  for (const double p : {0.0, -1.0})
    expect_failure(failure_of([&] { lp_pool(x, Window{.kernel = {2}}, p); }),
                   Status::InvalidArgument, {"lp_pool", "wanted more than 0"});
}

TEST(Pool, PositionsWantChannelsFirst) {
  const Ref<Context> context = testing::new_context("interp");
  const Tensor x = floats(context, {1, 2, 3, 4}, {1, 4, 1});
  const Window window{.kernel = {2}, .layout = Layout::ChannelsLast};
  expect_failure(failure_of([&] { max_pool_positions(x, window); }), Status::InvalidArgument,
                 {"channels are first"});
}

}  // namespace
}  // namespace tiny
