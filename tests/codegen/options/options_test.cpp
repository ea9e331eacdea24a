// Options change how a kernel runs, never what it computes; what does not fit is refused.
#include "codegen/options/options.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/context.h"
#include "engine/realize.h"
#include "ir/build.h"
#include "shape/shape.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/reduce.h"
#include "tensor/value.h"
#include "tests/support/context.h"
#include "tests/support/failure.h"

namespace tiny {
namespace {

Ref<Context> context_with(const char* device, const std::string& options,
                          const char* isa = "auto") {
  Flags flags = testing::flags_for(device, isa);
  flags.opts = options;
  flags.noopt = options.empty() ? 1 : 0;
  flags.spec = 1;
  return make_ref<Context>(flags);
}

// a[m, k] b[k, n] with every kernel given these options; ranges r0 m, r1 n, r2 k; p0 a, p1 b, p2
// out.  With `relu`: the largest of that and 0.
std::vector<float> product(const char* device, const std::string& options, int64_t m, int64_t k,
                           int64_t n, bool relu = false, const char* isa = "auto") {
  const Ref<Context> context = context_with(device, options, isa);
  Graph& graph = context->graph();
  const auto matrix = [&](int64_t rows, int64_t columns, int64_t step) {
    std::vector<float> data(static_cast<size_t>(rows * columns));
    for (size_t i = 0; i < data.size(); ++i)
      data[i] = static_cast<float>(static_cast<int64_t>(i) * step % 17 - 8);
    const auto bytes = static_cast<int64_t>(data.size() * sizeof(float));
    const UOp buffer =
        make_buffer(graph, context->from_host(data.data(), bytes), kFloat32, rows * columns);
    return make_reshape(buffer, {rows, columns});
  };
  std::vector<float> out(static_cast<size_t>(m * n));
  {
    const UOp a = make_expand(make_reshape(matrix(m, k, 7), {m, 1, k}), {m, n, k});
    const UOp b = make_permute(matrix(k, n, 5), {1, 0});
    const UOp wide = make_expand(make_reshape(b, {1, n, k}), {m, n, k});
    UOp c = make_reduce(mul(a, wide), Op::Add, {2});
    if (relu)
      c = elementwise(Op::Max,
                      {c, make_expand(make_reshape(graph.constant(kFloat32, 0), {1, 1}), {m, n})});
    read(*context, c, out.data(), static_cast<int64_t>(out.size() * sizeof(float)));
  }
  return out;
}

// Small integers add exactly in any order: the results are equal to the bit.
TEST(Options, AListChangesNoValue) {
  const char* lists[] = {
      "TILE r0 4; UPCAST r3",
      "TILE r1 16; VEC r3",
      "TILE r0 6; UPCAST r3; TILE r1 32; TILE r4 16; UPCAST r4; VEC r5",
      "TILE r2 4; UNROLL r3",
      "TILE r2 16; VEC r3",
      "TILE r2 32; TILE r3 16; UPCAST r3; VEC r4",
      "ORDER r1 r0; TILE r1 16; VEC r3; THREAD r1",
      "TILE r0 14; UPCAST r3; TILE r1 48; TILE r4 16; UPCAST r4; VEC r5",
      "TILE r1 16; VEC r3; STAGE p1 r1 r2 r3",
      "STAGE p0 r0",
      "STAGE p0 all r0 r2 pad 3",
      "TILE r0 6; UPCAST r3; TILE r1 32; TILE r4 16; UPCAST r4; VEC r5; STAGE p1 r1 r2 r4 r5",
      "TILE r2 8; ORDER r2 r0 r1 r3; PREFETCH p1 r0",
      "TILE r2 8; ORDER r2 r0 r1 r3; PREFETCH p1 r0; TILE r1 32; TILE r4 16; UPCAST r4; VEC r5",
      "TILE r2 8; ORDER r2 r0 r1 r3; PREFETCH p1 r0; TILE r0 3; UPCAST r4; TILE r3 4; UNROLL r5",
      "PREFETCH p0 r0",
      "PREFETCH p0 r1",
      "PREFETCH p1 r1",
      "PREFETCH p1 r2; PREFETCH p0 r2",
      "PREFETCH p2 r1; TILE r2 4",
      "PREFETCH p2 r0; PREFETCH p2 r1; TILE r1 16; VEC r3",
      "TILE r0 4; UPCAST r3; TILE r1 32; TILE r4 16; UPCAST r4; VEC r5; PREFETCH p0 r1",
      "TILE r0 4; UPCAST r3; TILE r1 16; VEC r4; PREFETCH p0 r1; PREFETCH p2 r1; PREFETCH p1 r1",
      "TILE r1 16; VEC r3; STAGE p0 r0 r2; TILE r2 4; PREFETCH p0 r1; THREAD r0",
      "TILE r2 8; VEC r3; PREFETCH p0 r0",
      "TILE r2 8; TILE r3 4; UPCAST r3; VEC r4; PREFETCH p0 r0; THREAD r0",
      "BYPASS p2",
      "TILE r1 16; VEC r3; BYPASS p2",
      "BYPASS p2; TILE r0 6; UPCAST r3; TILE r1 32; TILE r4 16; UPCAST r4; VEC r5",
      "TILE r0 4; VEC r3; BYPASS p2; THREAD r0",
      "OVERLAP r0",
      "TILE r2 8; TILE r1 16; VEC r4; OVERLAP r1; OVERLAP r0; THREAD r0",
  };
  const int64_t sizes[][3] = {{17, 23, 40}, {48, 64, 64}, {5, 33, 37}};
  for (const char* device : {"interp", "cpu"})
    for (const auto& s : sizes) {
      const std::vector<float> plain = product("interp", "", s[0], s[1], s[2]);
      for (const char* list : lists)
        EXPECT_EQ(product(device, list, s[0], s[1], s[2]), plain)
            << device << " " << list << " " << s[0] << "x" << s[1] << "x" << s[2];
    }
}

// A sum that says where to read is known when its steps are done, and not when lines are fetched.
TEST(Options, WhatASumPointsAtIsNotFetchedAhead) {
  const auto read_by_sums = [](const std::string& options) {
    const Ref<Context> context = context_with("cpu", options);
    std::vector<float> twos(64 * 3, 2), numbers(256), out(64);
    std::iota(numbers.begin(), numbers.end(), 0.0f);
    const auto tensor = [&](const Ints& shape, const std::vector<float>& values) {
      return from_data(context, kFloat32, shape, values.data(), std::ssize(values) * 4);
    };
    const Tensor y = tensor({64, 3}, twos), table = tensor({256}, numbers);
    const Tensor place = minimum(maximum(sum(y, {1}, false), number(y, 0)), number(y, 255));
    Tensor made = gather(table, cast(place, kInt64), 0);
    read(made, out.data(), std::ssize(out) * 4);
    return out;
  };
  EXPECT_EQ(read_by_sums(""), std::vector<float>(64, 6));
  testing::expect_failure(testing::failure_of([&] { read_by_sums("PREFETCH p1 r0"); }),
                          Status::InvalidArgument, {"data says which elements it wants"});
}

// A reduced loop outside of the store's loops adds into the destination.
TEST(Options, AReducedLoopMayStandOutsideTheStores) {
  const char* lists[] = {
      "TILE r2 8; ORDER r2 r0 r1",
      "TILE r2 8; ORDER r0 r2 r1",
      "TILE r2 16; TILE r3 4; ORDER r2 r3 r0 r1 r4",
      "TILE r2 8; TILE r1 16; ORDER r2 r0 r1; VEC r4",
      "TILE r2 16; TILE r1 32; TILE r4 16; TILE r0 6; ORDER r1 r2 r0 r3 r6 r4 r5; VEC r5; "
      "UPCAST r6; UPCAST r4; THREAD r1",
      "TILE r2 16; VEC r3; ORDER r2 r0 r1",
      // The GEMM of panels: columns, steps, rows; both operands packed.
      "TILE r2 16; TILE r1 64; TILE r4 32; TILE r5 16; TILE r0 14; ORDER r1 r2 r0 r4 r3 r7 r5 r6; "
      "VEC r6; UPCAST r7; UPCAST r5; STAGE p1 r2 r4 r3 r5 r6; STAGE p0 r0 r7 r3 pad 16",
      "TILE r2 8; ORDER r2 r0 r1 r3; PREFETCH p1 r0",
      // What the next tile of rows reads comes meanwhile, and what this one's sums are added to.
      "TILE r2 16; TILE r1 64; TILE r4 32; TILE r5 16; TILE r0 14; ORDER r1 r2 r0 r4 r3 r7 r5 r6; "
      "VEC r6; UPCAST r7; UPCAST r5; STAGE p1 r2 r4 r3 r5 r6; STAGE p0 r0 r7 r3 pad 16; "
      "PREFETCH p0 r4; PREFETCH p2 r4",
      "TILE r2 16; TILE r1 32; TILE r4 16; TILE r0 6; ORDER r1 r2 r0 r3 r6 r4 r5; VEC r5; "
      "UPCAST r6; UPCAST r4; PREFETCH p2 r0; PREFETCH p0 r0; THREAD r1",
      "TILE r2 8; TILE r1 16; ORDER r2 r0 r1; VEC r4; BYPASS p2",
  };
  const int64_t sizes[][3] = {{17, 23, 70}, {48, 64, 130}, {29, 33, 137}};
  for (const char* device : {"interp", "cpu", "c"})
    for (const auto& s : sizes)
      for (const bool relu : {false, true}) {
        const std::vector<float> plain = product("interp", "", s[0], s[1], s[2], relu);
        for (const char* list : lists) {
          if (device == std::string("c") && s[0] != 29) continue;  // a compiler runs for each
          EXPECT_EQ(product(device, list, s[0], s[1], s[2], relu), plain)
              << device << " " << list << " " << s[0] << "x" << s[1] << "x" << s[2];
        }
      }
}

// Rows of a, each three times with zeros on both sides, times b; the largest of that and 0.  Ranges
// r0 rows, r1 columns, r2 times, r3 steps.
std::vector<float> padded_product(const char* device, const std::string& options) {
  constexpr int64_t kRows = 15, kColumns = 5, kTimes = 3, kSteps = 2, kPadding = 3;
  constexpr int64_t kAll = kSteps + 2 * kPadding;
  const Ref<Context> context = context_with(device, options);
  Graph& graph = context->graph();
  const auto values = [&](const Shape& shape, int64_t step) {
    std::vector<float> data(static_cast<size_t>(tiny::product(shape).value()));
    for (size_t i = 0; i < data.size(); ++i)
      data[i] = static_cast<float>(static_cast<int64_t>(i) * step % 17 - 8);
    const auto bytes = static_cast<int64_t>(data.size() * sizeof(float));
    return make_reshape(
        make_buffer(graph, context->from_host(data.data(), bytes), kFloat32, std::ssize(data)),
        shape);
  };
  std::vector<float> out(kRows * kColumns);
  const Shape all{kRows, kColumns, kTimes, kAll};
  const UOp a =
      make_pad(values({kRows, 1, kTimes, kSteps}, 7), {0, 0, 0, kPadding}, {0, 0, 0, kPadding});
  const UOp b = values({1, kColumns, kTimes, kAll}, 5);
  const UOp sum = make_reduce(mul(make_expand(a, all), make_expand(b, all)), Op::Add, {2, 3});
  const UOp zero = make_reshape(graph.constant(kFloat32, 0), {1, 1});
  const UOp largest = elementwise(Op::Max, {sum, make_expand(zero, {kRows, kColumns})});
  read(*context, largest, out.data(), static_cast<int64_t>(out.size() * sizeof(float)));
  return out;
}

// Trips of such a loop are split off where a is zero, and so is the last tile of rows: they stand
// in one block, where each has its own value of the sum so far.
TEST(Options, TripsThatAreSplitOffEachHaveTheirOwnSum) {
  const char* list = "TILE r3 2; UNROLL r4; TILE r0 8; VEC r5; ORDER r1 r2 r3 r4 r0 r5";
  const std::vector<float> plain = padded_product("interp", "");
  for (const char* device : {"interp", "cpu"})
    EXPECT_EQ(padded_product(device, list), plain) << device;
}

// More accumulators than there are registers: some of them live in memory.
TEST(Options, FortyAccumulatorsRunOnSixteenRegisters) {
  const char* lists[] = {"TILE r0 10; UPCAST r3; TILE r1 32; TILE r4 8; UPCAST r4; VEC r5",
                         "TILE r0 40; UPCAST r3; TILE r1 8; VEC r4",
                         "TILE r1 320; TILE r3 8; UPCAST r3; VEC r4"};
  for (const char* list : lists)
    EXPECT_EQ(product("cpu", list, 43, 29, 330, false, "avx2"), product("interp", "", 43, 29, 330))
        << list;
}

TEST(Options, TextReplaysExactly) {
  const char* text =
      "TILE r0 14; VEC r3; ORDER r1 r0; STAGE p1 r2 r0 r3 pad 16; STAGE p0 all; STAGE v7 r0; "
      "PREFETCH p1 r0; BYPASS p2; OVERLAP r0";
  EXPECT_EQ(to_text(parse_options(text)), text);
}

TEST(Options, WhatDoesNotFitIsRefused) {
  for (const char* list : {"TILE r9 4",
                           "TILE r0 0",
                           "VEC r0",
                           "UPCAST r0; UPCAST r0",
                           "THREAD r1",
                           "ORDER r0 r0",
                           "STAGE p7 r0",
                           "PREFETCH p7 r0",
                           "PREFETCH p1 r0",
                           "ORDER r1 r0 r2; PREFETCH p2 r0; ORDER r2 r0 r1; PREFETCH p0 r1",
                           "PREFETCH r0",
                           "BYPASS p0",
                           "BYPASS p7",
                           "BYPASS p2; BYPASS p2",
                           "BYPASS r0",
                           "BYPASS",
                           "BYPASS p2 r0",
                           "OVERLAP r2",
                           "OVERLAP r9",
                           "OVERLAP p0",
                           "OVERLAP",
                           "VEC r0; OVERLAP r0",
                           "OVERLAP r0; OVERLAP r0",
                           "GROUP r0",
                           "TILE 0 4",
                           "TILE r0",
                           "VEC"}) {
    SCOPED_TRACE(list);
    testing::expect_failure(testing::failure_of([&] { product("interp", list, 17, 23, 40); }),
                            Status::InvalidArgument);
  }
}

}  // namespace
}  // namespace tiny
