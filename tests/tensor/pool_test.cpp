// Where the greatest elements of windows lie, in all of the input.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "base/text.h"
#include "codegen/figures.h"
#include "cost/machine.h"
#include "schedule/schedule.h"
#include "tensor/elementwise.h"
#include "tensor/program.h"
#include "tensor/run.h"
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

// Planes, tap by tap.
struct PooledPlanes {
  Floats greatest, mean;
};

PooledPlanes pooled(const Floats& x, const Ints& sizes, const Window& w, const Ints& counts) {
  PooledPlanes out;
  const int64_t planes = std::ssize(x) / (sizes[0] * sizes[1]);
  for (int64_t plane = 0; plane < planes; ++plane)
    for (int64_t i = 0; i < counts[0] * counts[1]; ++i) {
      float greatest = -INFINITY, sum = 0, inside = 0;
      for (int64_t k = 0; k < w.kernel[0] * w.kernel[1]; ++k) {
        const int64_t row =
            i / counts[1] * w.strides[0] - w.before[0] + k / w.kernel[1] * w.dilations[0];
        const int64_t column =
            i % counts[1] * w.strides[1] - w.before[1] + k % w.kernel[1] * w.dilations[1];
        if (row < 0 || row >= sizes[0] || column < 0 || column >= sizes[1]) continue;
        const float v = x[static_cast<size_t>((plane * sizes[0] + row) * sizes[1] + column)];
        greatest = std::max(greatest, v);
        sum += v;
        inside += 1;
      }
      out.greatest.push_back(greatest);
      out.mean.push_back(sum / inside);
    }
  return out;
}

const Window kPlaneWindows[] = {
    {.strides = {1, 1}, .dilations = {1, 1}, .before = {2, 2}, .after = {2, 2}, .kernel = {5, 5}},
    {.strides = {2, 1}, .dilations = {1, 1}, .before = {3, 0}, .after = {2, 4}, .kernel = {7, 6}},
    {.strides = {1, 2}, .dilations = {2, 1}, .before = {1, 2}, .after = {4, 1}, .kernel = {4, 7}},
    {.strides = {3, 2}, .dilations = {1, 1}, .before = {0, 1}, .after = {0, 1}, .kernel = {3, 2}},
};

TEST(Pool, WindowsOfPlanesHaveAllTheirValues) {
  const Ints sizes = {13, 19};
  Floats values(static_cast<size_t>(3 * sizes[0] * sizes[1]));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 37 % 101) - 50;
  for (const char* device : {"cpu", "interp"}) {
    const Ref<Context> context = testing::new_context(device);
    for (const Window& window : kPlaneWindows) {
      SCOPED_TRACE(cat(device, ", kernel ", window.kernel[0], "x", window.kernel[1]));
      const Tensor x = floats(context, values, {1, 3, sizes[0], sizes[1]});
      const Tensor greatest = max_pool(x, window);
      const Ints shape = const_dims(greatest.shape());
      const PooledPlanes want = pooled(values, sizes, window, {shape[2], shape[3]});
      EXPECT_EQ(floats_of(greatest), want.greatest);
      expect_near(floats_of(avg_pool(x, window)), want.mean);
    }
  }
}

// Of all kernels that make a value, for each element of it.
double operations_for_each(const Tensor& made, int64_t elements) {
  const UOp stored = made.node().graph().make(Op::Contiguous, {made.node()});
  double operations = 0;
  for (const ScheduledKernel& k : make_schedule({&stored, 1}, avx512_machine(), true).kernels)
    operations += count_operations(k.kernel);
  return operations / static_cast<double>(elements);
}

// What windows share along one axis is reduced once, where that saves much.
TEST(Pool, LargeWindowsTakeAsManyStepsAsTheirAxesTogether) {
  const Ref<Context> context = testing::planning_context();
  const Tensor x = make_placeholder(context, kFloat32, {1, 8, 64, 64});
  const auto pooled_with = [&](int64_t kernel, int64_t stride) {
    return max_pool(x, {.strides = {stride, stride}, .kernel = {kernel, kernel}});
  };
  EXPECT_LT(operations_for_each(pooled_with(7, 1), 8 * 58 * 58), 2 * 7 + 4);
  EXPECT_LT(operations_for_each(pooled_with(5, 2), 8 * 30 * 30), 2 * 5 + 5 + 4);
  // Windows side by side share nothing.
  EXPECT_LE(operations_for_each(pooled_with(8, 8), 8 * 8 * 8), 64);
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

// Strides twice, so that sizes are quotients of quotients.
TEST(Pool, PicturesMayHaveAnySize) {
  const Window half{.strides = {2, 2}, .before = {1, 1}, .after = {1, 1}, .kernel = {3, 3}};
  Window whole = half;
  whole.count_include_pad = true;
  Window over{.strides = {2, 2}, .before = {1, 1}, .after = {1, 1}, .kernel = {2, 2}};
  over.ceil_mode = true;
  const auto pools = [&](const Tensor& x) -> std::vector<Tensor> {
    return {max_pool(max_pool(x, half), half),
            max_pool(x, over),
            cast(max_pool_indices(x, half), kFloat32),
            cast(max_pool_indices(x, over), kFloat32),
            avg_pool(x, half),
            avg_pool(x, whole),
            avg_pool(x, over),
            lp_pool(x, half, 2)};
  };
  for (const char* device : {"cpu", "interp"}) {
    const Ref<Context> context = testing::new_context(device);
    const Dim height(context->graph().variable("H", 3, 40));
    const Dim width(context->graph().variable("W", 3, 30));
    const Tensor x = make_placeholder(context, kFloat32, {1, 2, height, width});
    const std::vector<Tensor> all = pools(x);
    const Ref<TensorRun> run = make_ref<TensorRun>(context, compile_tensors(context, {{x}}, all));
    for (const Ints& size : {Ints{8, 8}, {3, 30}, {11, 4}, {40, 7}}) {
      Floats values(static_cast<size_t>(2 * size[0] * size[1]));
      for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 37 % 101) - 50;
      const Tensor data = floats(context, values, {1, 2, size[0], size[1]});
      run->set_input(0, data);
      run->execute();
      const std::vector<Tensor> want = pools(data);
      for (size_t i = 0; i < want.size(); ++i) {
        Floats got(static_cast<size_t>(run->output_ports()[i].bytes / 4));
        run->read_output(i, got.data());
        expect_near(got, floats_of(want[i]));
      }
    }
  }
}

}  // namespace
}  // namespace tiny
