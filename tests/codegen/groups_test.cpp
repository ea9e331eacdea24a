// Kernels of groups of threads, by lists of options on the interpreter: they compute what those
// without options do, and lists that no group can run are refused.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "codegen/pipeline.h"
#include "engine/backend.h"
#include "engine/context.h"
#include "schedule/schedule.h"
#include "tensor/activation.h"
#include "tensor/elementwise.h"
#include "tensor/matmul.h"
#include "tensor/normalization.h"
#include "tensor/reduce.h"
#include "tensor/value.h"
#include "tensor/window.h"
#include "tests/support/context.h"
#include "tests/support/failure.h"
#include "tests/support/random_kernels.h"
#include "tests/support/tensors.h"

namespace tiny {
namespace {

using testing::expect_failure;
using testing::failure_of;
using testing::Floats;

Ref<Context> context_with(const std::string& options, const char* device = "interp") {
  Flags flags = testing::flags_for(device);
  flags.opts = options;
  flags.noopt = options.empty() ? 1 : 0;
  flags.spec = 1;
  return make_ref<Context>(flags);
}

// Small whole numbers, which add exactly in any order.
Tensor numbers(const Ref<Context>& context, const Ints& shape, int64_t step) {
  int64_t count = 1;
  for (const int64_t n : shape) count *= n;
  Floats values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>(i * step % 17 - 8));
  return testing::floats(context, values, shape);
}

// r0 m, r1 n, r2 k; p0 a, p1 b, p2 the result.
Floats product(const std::string& options, int64_t m, int64_t k, int64_t n,
               const char* device = "interp") {
  const Ref<Context> context = context_with(options, device);
  return testing::floats_of(matmul(numbers(context, {m, k}, 7), numbers(context, {k, n}, 5)));
}

// Rows: r0, of which the others sum, take the largest, and store.
Floats rows_of(const std::string& options, int64_t rows, int64_t columns) {
  const Ref<Context> context = context_with(options);
  return testing::floats_of(softmax(numbers(context, {rows, columns}, 3), 1));
}

// A group of 16 x 16 threads has a tile of 32 x 32, each thread 2 x 2 of it in registers; of 16
// steps at a time both operands are shared.
constexpr const char* kTiledProduct =
    "TILE r0 32; TILE r3 2; TILE r1 32; TILE r5 2; TILE r2 16; ORDER r0 r1 r2 r7 r3 r5 r4 r6; "
    "STAGE p0 r2 r7 shared; STAGE p1 r2 shared; "
    "THREAD r0; THREAD r1; LOCAL r3 1; LOCAL r5 0; UPCAST r4; UPCAST r6";

TEST(Groups, ATiledProductIsThatOfOneThread) {
  for (const auto& [m, k, n] : std::vector<std::array<int64_t, 3>>{
           {64, 32, 64}, {33, 17, 35}, {70, 50, 90}, {34, 18, 36}, {128, 32, 64}})
    EXPECT_EQ(product(kTiledProduct, m, k, n), product("", m, k, n)) << m << " " << k << " " << n;
}

TEST(Groups, ThreadsFillWhatTheyShare) {
  // The fills are over r8 and r9 of a, r11 and r12 of b, and two steps that stay in a thread.
  const std::string list =
      std::string(kTiledProduct) + "; LOCAL r8 0; LOCAL r9 1; LOCAL r11 1; LOCAL r12 0";
  EXPECT_EQ(product(list, 70, 50, 90), product("", 70, 50, 90));
}

TEST(Groups, ASumIsFoldedOverThreads) {
  const Floats want = product("", 5, 200, 7);
  EXPECT_EQ(product("TILE r2 32; LOCAL r3 0; THREAD r0; THREAD r1", 5, 200, 7), want);
  EXPECT_EQ(product("TILE r2 8; LOCAL r3 2; THREAD r0", 5, 200, 7), want);
  EXPECT_EQ(product("TILE r2 64; TILE r3 4; VEC r4; LOCAL r3 0; THREAD r0", 5, 200, 7), want);
  EXPECT_EQ(product("TILE r2 64; TILE r3 8; LOCAL r3 1; LOCAL r4 0; THREAD r0", 5, 200, 7), want);
}

TEST(Groups, SeveralRangesAreLaunchedAsOne) {
  const Floats want = product("", 9, 20, 11);
  for (const char* device : {"interp", "cpu", "far"}) {
    EXPECT_EQ(product("THREAD r0; THREAD r1", 9, 20, 11, device), want) << device;
    EXPECT_EQ(
        product("TILE r0 4; ORDER r0 r1 r3; THREAD r0; THREAD r1; THREAD r3", 9, 20, 11, device),
        want)
        << device;
  }
  EXPECT_EQ(product("TILE r0 4; THREAD r0; LOCAL r3 0; TILE r1 8; LOCAL r4 1", 9, 20, 11), want);
}

TEST(Groups, ARowIsAGroup) {
  for (const auto& [rows, columns] :
       std::vector<std::array<int64_t, 2>>{{3, 64}, {5, 100}, {2, 7}}) {
    const Floats want = rows_of("", rows, columns);
    const Floats slack(want.size(), 1e-6F);
    for (const char* list :
         {"THREAD r0; TILE r1 32; LOCAL r4 0; TILE r2 32; LOCAL r5 0; TILE r3 32; LOCAL r6 0",
          "THREAD r0; TILE r3 16; LOCAL r4 0", "TILE r1 16; LOCAL r4 1; THREAD r0"})
      EXPECT_EQ(testing::difference(rows_of(list, rows, columns), want, slack), "")
          << list << " on " << rows << " x " << columns;
  }
}

// Threads and lanes beyond the end of a range read nothing of what their group shares: what is
// verified knows how much that is.
TEST(Groups, WindowsOfASharedRowEndWithIt) {
  const auto windows = [](const std::string& options) {
    const Ref<Context> context = context_with(options);
    return testing::floats_of(conv(numbers(context, {1, 3, 41}, 7), numbers(context, {3, 1, 5}, 5),
                                   Tensor(), Window().with_groups(3)));
  };
  const Floats want = windows("");
  for (const char* list : {"TILE r1 32; LOCAL r5 0", "TILE r1 8; VEC r5",
                           "TILE r1 16; TILE r5 4; UPCAST r6; LOCAL r5 0"})
    EXPECT_EQ(windows(std::string("THREAD r0; STAGE p0 r0 shared; ") + list), want) << list;
}

TEST(Groups, AFarDeviceRunsThem) {
  EXPECT_EQ(product(kTiledProduct, 70, 50, 90, "far"), product("", 70, 50, 90));
}

void expect_refused(const std::string& options, const char* why, const char* device = "interp") {
  expect_failure(failure_of([&] { product(options, 64, 48, 40, device); }), Status::InvalidArgument,
                 {why});
}

TEST(Groups, WhatNoGroupCanRunIsRefused) {
  expect_refused("LOCAL r0 3", "a group has the axes 0 to 2");
  expect_refused("LOCAL r0 0; LOCAL r1 0", "the axis has another size");
  expect_refused("TILE r0 8; LOCAL r3 0; TILE r1 4; LOCAL r4 0", "the axis has another size");
  expect_refused("TILE r0 8; TILE r1 8; LOCAL r3 0; LOCAL r4 0",
                 "a value depends on another range of the axis");
  expect_refused("LOCAL r2 0", "a power of two");
  expect_refused("VEC r0; LOCAL r0 0", "the range has a kind already");
  expect_refused("TILE r0 8; STAGE p0 r0; LOCAL r4 0", "a stage that it fills is of each thread");
  expect_refused("TILE r0 8; STAGE p0 r3 shared; LOCAL r3 0", "is filled anew for each thread");
  expect_refused("THREAD r1", "threads share the outermost loops");
  expect_refused("THREAD r0; THREAD r1; ORDER r1 r0", "stay outermost");
  expect_refused("LOCAL r0 0; LOCAL r1 1", "groups of at most 1024");
  expect_refused("TILE r0 8; LOCAL r3 0", "has no groups of threads", "cpu");
}

}  // namespace
}  // namespace tiny
