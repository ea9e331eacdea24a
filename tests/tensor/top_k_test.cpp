// The greatest or lowest elements, in order, with equals and NaN.
#include "tensor/top_k.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "schedule/schedule.h"
#include "shape/shape.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/movement.h"
#include "tensor/program.h"
#include "tensor/value.h"
#include "tests/support/context.h"
#include "tests/support/failure.h"
#include "tests/support/machines.h"
#include "tests/support/tensors.h"

namespace tiny {
namespace {

using testing::Floats;
using testing::floats;
using testing::floats_of;
using testing::ints_of;

TEST(TopK, OrdersByValueThenByPlace) {
  for (const char* device : {"cpu", "interp"}) {
    const Ref<Context> context = testing::new_context(device);
    const Tensor a = floats(context, {3, 1, 3, 2, 0, 5}, {2, 3});
    const TopK most = top_k(a, 2, -1, true);
    EXPECT_EQ(floats_of(most.values), (Floats{3, 3, 5, 2}));
    EXPECT_EQ(ints_of(most.indices), (Ints{0, 2, 2, 0}));
    const TopK least = top_k(a, 1, 0, false);
    EXPECT_EQ(floats_of(least.values), (Floats{2, 0, 3}));
    EXPECT_EQ(ints_of(least.indices), (Ints{1, 1, 0}));
    EXPECT_EQ(ints_of(top_k(a, 0, 1, true).indices), Ints{});
  }
}

TEST(TopK, NanIsTheGreatest) {
  const Ref<Context> context = testing::new_context("interp");
  const Tensor a = floats(context, {1, NAN, INFINITY, -1});
  EXPECT_EQ(ints_of(top_k(a, 4, 0, true).indices), (Ints{1, 2, 0, 3}));
  EXPECT_EQ(ints_of(top_k(a, 4, 0, false).indices), (Ints{3, 0, 2, 1}));
}

template <typename T>
bool is_above(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && !std::isnan(b);
  return a > b;
}

// Zeros by their sign, too.
template <typename T>
bool is_same(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b);
  else
    return a == b;
}

// Few values, so that many are equal.
template <typename T>
std::vector<T> few_values(int64_t count, uint32_t seed) {
  std::vector<T> some{T{0}, T{1}, T{3}, T{100}, std::numeric_limits<T>::max()};
  some.push_back(std::numeric_limits<T>::lowest());
  if constexpr (std::is_floating_point_v<T>) {
    const T more[] = {T{-0.0}, T{NAN}, -T{NAN}, T{INFINITY}, -T{INFINITY}, T(1e-42), T{-1}};
    some.insert(some.end(), std::begin(more), std::end(more));
  } else if constexpr (std::is_signed_v<T>) {
    some.push_back(-2);
  }
  std::mt19937 random(seed);
  std::vector<T> out(static_cast<size_t>(count));
  for (T& x : out) {
    const auto r = static_cast<uint32_t>(random());
    x = r % 3 != 0 ? some[r / 3 % some.size()] : static_cast<T>(r % 50021);
  }
  return out;
}

// What a stable sort gives, for each line along the middle axis of [outer, n, inner].
template <typename T>
void expect_sorted(const Ref<Context>& context, DType dtype, const Ints& shape, int64_t k,
                   bool largest, std::vector<T> data = {}) {
  const int64_t n = shape[1], inner = shape[2], count = shape[0] * n * inner;
  if (data.empty()) data = few_values<T>(count, static_cast<uint32_t>(count + k));
  const auto bytes = static_cast<int64_t>(sizeof(T));
  const Tensor a = from_data(context, dtype, shape, data.data(), count * bytes);
  TopK got = top_k(a, k, 1, largest);
  const Ints indices = ints_of(got.indices);
  std::vector<T> values(indices.size());
  read(got.values, values.data(), std::ssize(values) * bytes);
  for (int64_t line = 0; line < shape[0] * inner; ++line) {
    const int64_t outer = line / inner, column = line % inner;
    const auto at = [&](int64_t i) {
      return data[static_cast<size_t>((outer * n + i) * inner + column)];
    };
    Ints order(static_cast<size_t>(n));
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, [&](int64_t x, int64_t y) {
      return largest ? is_above(at(x), at(y)) : is_above(at(y), at(x));
    });
    for (int64_t i = 0; i < k; ++i) {
      const auto place = static_cast<size_t>((outer * k + i) * inner + column);
      const int64_t want = order[static_cast<size_t>(i)];
      ASSERT_EQ(indices[place], want) << "line " << line << " place " << i;
      ASSERT_TRUE(is_same(values[place], at(want))) << "line " << line << " place " << i;
    }
  }
}

TEST(TopK, IsAStableSortOfEveryType) {
  for (const testing::Machine& machine : testing::kMachines) {
    const Ref<Context> context = testing::new_context(machine.device, machine.isa);
    for (const bool largest : {true, false}) {
      expect_sorted<float>(context, kFloat32, {1, 100, 1}, 7, largest);
      expect_sorted<double>(context, kFloat64, {1, 37, 2}, 5, largest);
      expect_sorted<int8_t>(context, kInt8, {1, 300, 1}, 300, largest);
      expect_sorted<uint32_t>(context, kUInt32, {2, 33, 3}, 33, largest);
      expect_sorted<int64_t>(context, kInt64, {1, 50, 1}, 50, largest);
      expect_sorted<uint64_t>(context, kUInt64, {1, 20, 1}, 3, largest);
    }
  }
}

TEST(TopK, IsAStableSortOfEverySize) {
  const Ref<Context> context = testing::new_context("cpu");
  for (const int64_t n : {1, 2, 3, 9, 17, 64, 129, 1000})
    for (const int64_t k : {int64_t{1}, int64_t{2}, n / 3, n})
      if (k >= 1 && k <= n)
        for (const int64_t inner : {1, 3})
          expect_sorted<float>(context, kFloat32, {2, n, inner}, k, true);
}

TEST(TopK, OfManyElementsOnlyGroupsAreSorted) {
  for (const char* isa : {"", "avx2"}) {
    const Ref<Context> context = testing::new_context("cpu", isa);
    expect_sorted<float>(context, kFloat32, {1, 5001, 1}, 60, true);
    expect_sorted<float>(context, kFloat32, {2, 4096, 3}, 2, false);
    expect_sorted<int32_t>(context, kInt32, {1, 9000, 1}, 500, false);
    expect_sorted<int32_t>(context, kInt32, {1, 6000, 1}, 6000, true);
    for (const bool largest : {true, false}) {
      expect_sorted<float>(context, kFloat32, {3, 777, 1}, 10, largest);
      expect_sorted<uint8_t>(context, kUInt8, {2, 700, 5}, 4, largest);
      expect_sorted<int16_t>(context, kInt16, {1, 513, 2}, 32, largest);
      expect_sorted<uint32_t>(context, kUInt32, {2, 1025, 1}, 3, largest);
    }
  }
}

// Groups lie across rows, of what is computed of rows: that is stored, and memory is not copied.
TEST(TopK, WhatIsComputedIsStoredBeforeItsGroups) {
  const Ref<Context> context = testing::planning_context();
  const auto stores_all = [&](const Tensor& rows) {
    const Tensor best = top_k(reshape(rows, {4170}), 5, 0, true).values;
    const UOp wanted = best.graph().make(Op::Contiguous, {best.node()});
    const Schedule schedule = make_schedule({&wanted, 1}, avx512_machine());
    return std::ranges::any_of(schedule.kernels, [](const ScheduledKernel& k) {
      return product(k.stores.front().view.shape).is(4170);
    });
  };
  const Tensor given = make_placeholder(context, kFloat32, {5, 834});
  EXPECT_TRUE(stores_all(add(given, make_placeholder(context, kFloat32, {5, 1}))));
  EXPECT_FALSE(stores_all(given));
}

// Groups of nothing else, and what fills the last ones up, are behind those of a number.
TEST(TopK, GroupsOfNanAreTheGreatest) {
  const Ref<Context> context = testing::new_context("cpu");
  for (const bool largest : {true, false})
    for (const float number : {1.0F, INFINITY, -INFINITY}) {
      std::vector<float> data(2003, largest ? number : NAN);
      for (const int i : {1500, 1501, 400, 2002, 2001})
        data[static_cast<size_t>(i)] = largest ? NAN : number;
      expect_sorted<float>(context, kFloat32, {1, 2003, 1}, 9, largest, data);
    }
}

TEST(TopK, MistakesAreNamed) {
  const Ref<Context> context = testing::new_context("interp");
  const Tensor a = floats(context, {1, 2});
  testing::expect_failure(testing::failure_of([&] { top_k(a, 3, 0, true); }),
                          Status::InvalidArgument, {"k = 3 of 2"});
  testing::expect_failure(testing::failure_of([&] { top_k(a, 1, 1, true); }), Status::Shape);
}

}  // namespace
}  // namespace tiny
