// Running sums along any axis, from either end, with the element or without.
#include "tensor/scan.h"

#include <gtest/gtest.h>

#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/value.h"
#include "tests/support/context.h"
#include "tests/support/machines.h"
#include "tests/support/tensors.h"

namespace tiny {
namespace {

using testing::Floats;
using testing::floats;
using testing::floats_of;

// Sums of integers wrap and are exact.
void expect_sums(const Ref<Context>& context, int64_t n, int64_t inner, bool exclusive,
                 bool reverse, int64_t outer = 3) {
  Ints values(static_cast<size_t>(outer * n * inner));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int64_t>(i * i % 1013) - 500;
  const Tensor a =
      from_data(context, kInt64, {outer, n, inner}, values.data(), std::ssize(values) * 8);
  Tensor sums = cumsum(a, 1, exclusive, reverse);
  Ints got(values.size());
  read(sums, got.data(), std::ssize(got) * 8);
  for (int64_t line = 0; line < outer * inner; ++line) {
    int64_t sum = 0;
    for (int64_t i = 0; i < n; ++i) {
      const int64_t row = reverse ? n - 1 - i : i;
      const auto at = static_cast<size_t>((line / inner * n + row) * inner + line % inner);
      const int64_t before = sum;
      sum += values[at];
      ASSERT_EQ(got[at], exclusive ? before : sum)
          << n << " elements, " << inner << " inside, line " << line << ", element " << row;
    }
  }
}

TEST(Cumsum, AddsUpAlongAnAxisOfAnyLength) {
  for (const testing::Machine& machine : testing::kMachines) {
    const Ref<Context> context = testing::new_context(machine.device, machine.isa);
    for (const int64_t n : {1, 2, 3, 13, 16, 31, 32, 34, 90, 300})
      for (const int64_t inner : {1, 8, 19})
        for (const bool exclusive : {false, true}) expect_sums(context, n, inner, exclusive, false);
  }
}

TEST(Cumsum, AddsUpFromTheEnd) {
  const Ref<Context> context = testing::new_context("cpu");
  for (const int64_t n : {1, 13, 31, 37, 90})
    for (const int64_t inner : {1, 8})
      for (const bool exclusive : {false, true}) expect_sums(context, n, inner, exclusive, true);
}

TEST(Cumsum, AddsUpOneLongRowInBlocks) {
  for (const testing::Machine& machine : testing::kMachines) {
    const Ref<Context> context = testing::new_context(machine.device, machine.isa);
    for (const int64_t n : {16128, 16130, 20000})
      for (const bool exclusive : {false, true})
        for (const bool reverse : {false, true}) expect_sums(context, n, 1, exclusive, reverse, 1);
  }
}

TEST(Cumprod, MultipliesUpToEach) {
  for (const char* device : {"cpu", "interp"}) {
    const Ref<Context> context = testing::new_context(device);
    const Tensor a = floats(context, {2, 3, 4, 5, 6, 7}, {2, 3});
    EXPECT_EQ(floats_of(cumprod(a, 1)), (Floats{2, 6, 24, 5, 30, 210}));
    EXPECT_EQ(floats_of(cumprod(a, -1, true)), (Floats{1, 2, 6, 1, 5, 30}));
    EXPECT_EQ(floats_of(cumprod(a, 1, false, true)), (Floats{24, 12, 4, 210, 42, 7}));
    EXPECT_EQ(floats_of(cumprod(a, 0, true, true)), (Floats{5, 6, 7, 1, 1, 1}));
    EXPECT_EQ(cumprod(cast(a, kInt32), 0).dtype(), kInt32);
  }
}

}  // namespace
}  // namespace tiny
