// What the estimate must rank, by the kernels and lists of which it is known.
#include "cost/estimate.h"

#include <gtest/gtest.h>

#include <regex>

#include "base/text.h"
#include "codegen/choose/choose.h"
#include "codegen/options/options.h"
#include "codegen/pipeline.h"
#include "cost/borders.h"
#include "cost/limit.h"
#include "engine/context.h"
#include "schedule/rewrite/form_fma.h"
#include "schedule/schedule.h"
#include "shape/shape.h"
#include "tensor/activation.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/program.h"
#include "tensor/reduce.h"
#include "tensor/window.h"
#include "tests/support/context.h"

namespace tiny {
namespace {

class EstimateTest : public ::testing::Test {
 protected:
  Tensor input(const Ints& shape, DType dtype = kFloat32) {
    return make_placeholder(context_, dtype, to_shape(shape));
  }
  // The only kernel of `t`, as options apply to it.
  Kernel kernel_of(const Tensor& t) {
    const UOp stored = context_->graph().make(Op::Contiguous, {t.node()});
    const Schedule schedule = make_schedule({&stored, 1}, target_);
    EXPECT_EQ(schedule.kernels.size(), 1u);
    return prepare_kernel(schedule.kernels.front().kernel, target_);
  }
  Estimate of(const Kernel& kernel, std::string_view list) {
    return estimate(apply_options(kernel, parse_options(list)), target_);
  }
  double seconds(const Kernel& kernel, std::string_view list) { return of(kernel, list).seconds; }

  Ref<Context> context_ = testing::planning_context();
  Machine target_ = avx512_machine();
};

// Elements that lie next to each other are in one line, however many loads read them.
TEST_F(EstimateTest, NeighboursShareTheirLines) {
  const auto level2 = [&](int64_t taps) {
    const Tensor x = input({4096, 4096 + 8});
    Tensor sum = shrink(x, {0, 0}, {4096, 4096});
    for (int64_t i = 1; i < taps; ++i) sum = add(sum, shrink(x, {0, i}, {4096, 4096 + i}));
    return of(kernel_of(sum), "TILE r1 16; VEC r2").each[static_cast<size_t>(Resource::Level2)];
  };
  EXPECT_LT(level2(8), 1.1 * level2(1));
}

TEST_F(EstimateTest, LanesSideBySideBeatLanesApart) {
  const Kernel sum = kernel_of(add(input({512, 512}), permute(input({512, 512}), {1, 0})));
  const Kernel row = kernel_of(mul(input({512, 512}), input({512, 1})));
  ASSERT_EQ(row.ranges.size(), 2u);
  const double along = seconds(row, "TILE r1 16; VEC r2");
  EXPECT_LT(5 * along, seconds(row, "TILE r0 16; VEC r2"));
  EXPECT_LT(4 * along, seconds(row, "")) << "one lane";
  EXPECT_GT(seconds(sum, "TILE r1 16; VEC r2"), 2 * along) << "one of two is read apart";
}

TEST_F(EstimateTest, SumsInRegistersHideTheirLatency) {
  const Kernel product = kernel_of(matmul(input({96, 256}), input({256, 256})));
  const double one = seconds(product, "TILE r1 16; VEC r3");
  const double twelve = seconds(product, "TILE r0 12; UPCAST r3; TILE r1 16; VEC r4");
  EXPECT_LT(twelve * 3, one);
  EXPECT_LT(seconds(product, "TILE r0 12; UPCAST r3; TILE r1 32; TILE r4 16; UPCAST r4; VEC r5"),
            twelve);
  // Sums that registers do not hold are loaded and stored in each step.
  const double spilled =
      seconds(product, "TILE r0 24; UPCAST r3; TILE r1 64; TILE r4 16; UPCAST r4; VEC r5");
  EXPECT_GT(spilled, twelve);
}

TEST_F(EstimateTest, AGoodProductIsNearItsLimit) {
  const Kernel product = kernel_of(matmul(input({144, 256}), input({256, 64})));
  const double limit = limit_seconds(access_table(product), target_);
  const double good =
      seconds(product, "TILE r0 12; UPCAST r3; TILE r1 32; TILE r4 16; UPCAST r4; VEC r5") -
      target_.launch_seconds;
  EXPECT_GE(good, limit);
  EXPECT_LT(good, 2.5 * limit);
  EXPECT_NEAR(limit, 144.0 * 256 * 64 / target_.fma_rate, 0.01 * limit);
}

// What is computed in the loops of a sum is computed again in each turn of the loops around it; a
// stage is filled once.
TEST_F(EstimateTest, WhatIsComputedInsideCountsForEachTurn) {
  const Tensor means = mean(input({64, 100}), {1});
  const Kernel kernel = kernel_of(matmul(reshape(means, {1, 64}), input({64, 400})));
  if (kernel.ranges.size() < 3) GTEST_SKIP() << "the mean is a kernel of its own";
  const std::vector<UOp> order = topological(kernel.roots);
  int64_t inner = -1;
  for (size_t n = 0; n < order.size() && inner < 0; ++n)
    if (order[n].op() == Op::Reduce) inner = static_cast<int64_t>(n);
  EXPECT_LT(5 * seconds(kernel, cat("STAGE v", inner, " all")), seconds(kernel, ""));
}

// A sum over what other loops walk is added to memory if its loop stands outside.
TEST_F(EstimateTest, LoopsOutsideOfAnElementAddToMemory) {
  const Kernel product = kernel_of(matmul(input({64, 64}), input({64, 64})));
  EXPECT_LT(seconds(product, "TILE r1 16; VEC r3"),
            seconds(product, "TILE r1 16; VEC r3; TILE r2 4; ORDER r2 r0 r1"));
}

// An operand that a cache does not hold comes again for each tile of rows.
TEST_F(EstimateTest, WhatNoCacheHoldsComesAgain) {
  const Kernel product = kernel_of(matmul(input({512, 4096}), input({4096, 4096})));
  const char* few = "TILE r0 2; UPCAST r3; TILE r1 16; VEC r4";
  const char* many = "TILE r0 14; UPCAST r3; TILE r1 16; VEC r4";
  EXPECT_GT(of(product, few)[Resource::Memory], 2 * of(product, many)[Resource::Memory]);
}

// Rows that are looked up in a small table are in a cache once all have been read.
TEST_F(EstimateTest, LookedUpRowsAreAtMostTheTable) {
  const auto from_memory = [&](int64_t rows) {
    const Tensor out = gather(input({rows, 1024}), input({20000}, kInt64), 0);
    return of(kernel_of(out), "").each[static_cast<size_t>(Resource::Memory)];
  };
  EXPECT_LT(from_memory(5000) * 1.3, from_memory(100000));
}

// A lookup whose index is what another found: vectors wait side by side, and turns after each
// other.
TEST_F(EstimateTest, LookupsInARowWaitForEachOther) {
  const auto found = [&](int64_t lookups) {
    Tensor at = input({512}, kInt32);
    for (int64_t i = 0; i < lookups; ++i) at = gather(input({4096}, kInt32), at, 0);
    return kernel_of(at);
  };
  const auto waits = [&](const Kernel& kernel, const char* list) {
    return of(kernel, list)[Resource::Chain];
  };
  const char* const kOne = "TILE r0 8; VEC r1";
  const char* const kFour = "TILE r0 32; TILE r1 8; UPCAST r1; VEC r2";
  EXPECT_EQ(waits(found(1), kOne), 0) << "its index is known ahead";
  EXPECT_GT(waits(found(12), kOne), 1.5 * waits(found(6), kOne));
  EXPECT_GT(waits(found(12), kOne), 2 * waits(found(12), kFour));
  EXPECT_LT(seconds(found(12), kFour), seconds(found(12), kOne));
}

TEST_F(EstimateTest, SaysWhatIsWantedMost) {
  const Kernel copy = kernel_of(neg(input({1 << 24})));
  const Estimate large = of(copy, "TILE r0 16; VEC r1");
  EXPECT_EQ(name_of(large.bound()), "memory");
  const Kernel quotient = kernel_of(div(input({2048}), input({2048})));
  EXPECT_EQ(name_of(of(quotient, "TILE r0 16; VEC r1").bound()), "arithmetic");
  const Kernel sum = kernel_of(tiny::sum(input({4096}), {0}));
  EXPECT_EQ(name_of(of(sum, "").bound()), "chain");
}

// A cycle is that of what a unit computes at once: half a vector takes half of a whole one's time
// where units compute halves, and as much where they compute all of it; the rate is the same.
TEST_F(EstimateTest, UnitsComputeWholeVectorsOrHalves) {
  const Kernel product = kernel_of(matmul(input({96, 256}), input({256, 256})));
  const auto time = [&](int32_t unit_bytes, std::string_view list, Resource of_what) {
    target_.unit_bytes = unit_bytes;
    return of(product, list)[of_what];
  };
  const char* whole = "TILE r0 12; UPCAST r3; TILE r1 16; VEC r4";
  const char* half = "TILE r0 12; UPCAST r3; TILE r1 8; VEC r4";
  const char* spilled = "TILE r0 24; UPCAST r3; TILE r1 64; TILE r4 16; UPCAST r4; VEC r5";
  const auto sums = Resource::Arithmetic, issue = Resource::Issue, stores = Resource::Stores;
  EXPECT_DOUBLE_EQ(time(32, half, sums), time(32, whole, sums));
  EXPECT_DOUBLE_EQ(time(64, half, sums), 2 * time(64, whole, sums));
  EXPECT_DOUBLE_EQ(time(32, whole, sums), time(64, whole, sums));
  EXPECT_DOUBLE_EQ(time(32, whole, issue), time(64, whole, issue) / 2) << "cycles are shorter";
  EXPECT_DOUBLE_EQ(time(32, spilled, stores), time(64, spilled, stores)) << "by halves";
}

// Copies along a window's rows and its taps meet: each element is loaded once.
TEST_F(EstimateTest, CopiesThatMeetLoadOnce) {
  Window valid;
  const Kernel kernel = kernel_of(
      conv(input({1, 1, 1, 400}), expand(input({1, 1, 1, 1}), {64, 1, 1, 5}), Tensor(), valid));
  ASSERT_EQ(kernel.ranges.size(), 3u);  // channels, places, taps
  const auto loads = [&](std::string_view list) { return of(kernel, list)[Resource::Loads]; };
  const double apart = loads("TILE r1 4; UPCAST r3"),
               beside = loads("TILE r1 4; UPCAST r3; UNROLL r2");
  // Of 4 places and 5 taps 20 pairs, of 8 elements.
  EXPECT_LT(beside, 0.7 * apart);
}

// Lanes that are picked out of several registers take a mask of each register besides, where more
// tiles are at the border than are written apart.
TEST_F(EstimateTest, MasksThatLoopsMakeTakeTime) {
  const auto issued = [&](int64_t before) {
    const Tensor x = pad(input({256, 512}), {0, before}, {0, 2});
    const Tensor even = slice(x, {0, 0}, {256, 512 + before}, {1, 2});
    const Kernel kernel = kernel_of(add(even, input({256, (512 + before) / 2})));
    return of(kernel, "TILE r1 16; VEC r2")[Resource::Issue] / static_cast<double>(512 + before);
  };
  const int64_t tile = 32;  // elements that sixteen lanes are picked out of
  EXPECT_NEAR(issued(tile * kPeeledMax), issued(0), 0.05 * issued(0));
  EXPECT_GT(issued(tile * (kPeeledMax + 1)), 1.4 * issued(0));
}

// Lanes along an image whose taps are walked in a loop are masked anew by each tap, for all copies
// that lie below each other at once, where more taps are at the border than are written apart: so
// few, and taps side by side, have masks that are made outside.
TEST_F(EstimateTest, TapsInALoopMakeTheirMasks) {
  const auto issued = [&](int64_t border, bool is_padded, std::string_view list) {
    const int64_t taps = 2 * border + 1, size = is_padded ? 16 : 16 + 2 * border;
    const int64_t pad = is_padded ? border : 0;
    const Window window{{1, 1}, {}, {pad, pad}, {pad, pad}};
    const Tensor weight = input({16, 16, taps, taps});
    const Kernel kernel = kernel_of(conv(input({1, 16, size, size}), weight, Tensor(), window));
    return of(kernel, list)[Resource::Issue];
  };
  const int64_t few = kPeeledMax, many = kPeeledMax + 1;
  EXPECT_NEAR(issued(few, true, "VEC r2"), issued(few, false, "VEC r2"), 1e-9);
  EXPECT_GT(issued(many, true, "VEC r2"), 1.2 * issued(many, false, "VEC r2"));
  const char* taps = "UNROLL r4; UNROLL r5; VEC r2";
  EXPECT_LT(issued(many, true, taps), 1.1 * issued(many, false, taps));
  EXPECT_LT(issued(many, true, "UPCAST r0; VEC r2"), issued(many, true, "VEC r2"));
}

// A stage whose lanes lie apart is filled by squares that are turned in registers, where its rows
// stand side by side as copies: not lane by lane.
TEST_F(EstimateTest, StagesAreFilledByTurnedSquares) {
  const Kernel product = kernel_of(matmul(input({256, 256}), permute(input({256, 256}), {1, 0})));
  const std::string turned = to_text(choose_options(product, target_));
  const std::string rows = "UPCAST r8; ";
  const size_t at = turned.find("VEC r9; " + rows);  // lanes and rows of what is staged
  ASSERT_NE(at, std::string::npos) << turned;
  std::string apart = turned;
  apart.erase(turned.find(rows, at), rows.size());
  EXPECT_LT(of(product, turned)[Resource::Stores], 0.5 * of(product, apart)[Resource::Stores]);
}

// Lanes that are moved between registers, and those that are gathered, take what they do on the
// processor.
TEST_F(EstimateTest, MovedAndGatheredLanesHaveTheProcessorsPrice) {
  const Kernel turned = kernel_of(permute(input({256, 256}), {1, 0}));
  const Kernel looked_up = kernel_of(gather(input({64, 512}), input({512}, kInt64), 1));
  const auto arithmetic = [&](const Kernel& kernel, std::string_view list) {
    return of(kernel, list)[Resource::Arithmetic];
  };
  const char* squares = "TILE r1 16; TILE r0 16; VEC r3; UPCAST r2";
  const char* lanes = "TILE r1 8; VEC r2";
  const double moved = arithmetic(turned, squares), gathered = arithmetic(looked_up, lanes);
  target_.move_cycles *= 2;
  EXPECT_NEAR(arithmetic(turned, squares), 2 * moved, 1e-3 * moved);
  EXPECT_EQ(arithmetic(looked_up, lanes), gathered);
  target_.gather_cycles /= 2;
  EXPECT_LT(arithmetic(looked_up, lanes), 0.8 * gathered);
}

// A load that lies in two lines takes longer: as often as its steps and its offset let it.  Rows of
// 96 floats begin where lines do, of 100 floats at one of the four quarters of a line.
TEST_F(EstimateTest, LoadsThatLieInTwoLinesTakeLonger) {
  const auto loads = [&](int64_t row, int64_t first, std::string_view list) {
    const Tensor rows = shrink(input({64, row}), to_shape({0, first}), to_shape({64, first + 48}));
    return of(kernel_of(neg(rows)), list)[Resource::Loads];
  };
  const char* vectors = "TILE r1 16; VEC r2";
  const char* halves = "TILE r1 8; VEC r2";
  const double plain = loads(96, 0, vectors);
  EXPECT_NEAR(loads(96, 16, vectors), plain, 0.01 * plain) << "an offset of a line";
  EXPECT_NEAR(loads(100, 0, vectors), 1.75 * plain, 0.01 * plain) << "three places of four";
  EXPECT_NEAR(loads(96, 1, vectors), 2 * plain, 0.01 * plain) << "all lie alike";
  EXPECT_NEAR(loads(96, 0, halves), 2 * plain, 0.01 * plain);
  EXPECT_NEAR(loads(100, 0, halves), 2.5 * plain, 0.01 * plain) << "one place of four";
}

// A sum's lanes are added up in halves of a vector, four times; of the greatest each half is
// compared, too, for a NaN stays: three operations for one.
TEST_F(EstimateTest, LanesOfTheGreatestTakeLongerToFold) {
  const Tensor x = input({4096, 16});
  const auto issue = [&](const Tensor& of_lanes, Op op) {
    return of(kernel_of(reduce_as_is(of_lanes, op, {1}, false)), "VEC r1")[Resource::Issue];
  };
  const double sum = issue(x, Op::Add), operation = issue(x + x, Op::Add) - sum;
  EXPECT_NEAR((issue(x, Op::Max) - sum) / operation, 4 * 2, 0.5);
}

// Code for the last tile has only the steps that are within the range: it takes as long as these.
TEST_F(EstimateTest, TheLastTileTakesWhatIsLeftOfIt) {
  const auto arithmetic = [&](int64_t rows, int64_t columns, std::string_view list) {
    const Kernel product = kernel_of(matmul(input({rows, 64}), input({64, columns})));
    return of(product, list)[Resource::Arithmetic];
  };
  const char* list = "TILE r0 8; UPCAST r3; TILE r1 48; TILE r4 16; UPCAST r4; VEC r5";
  const double whole = arithmetic(48, 48, list);
  EXPECT_NEAR(arithmetic(33, 48, list), whole * 33 / 48, 1e-3 * whole) << "33 of 40 rows";
  // 100 columns are seven vectors of nine; what the last one lacks it computes all the same.
  EXPECT_NEAR(arithmetic(48, 100, list), whole * 7 / 3, 1e-3 * whole);
  EXPECT_NEAR(arithmetic(33, 100, list), whole * 7 / 3 * 33 / 48, 1e-3 * whole);
}

// What all lanes of a sum share is loaded into as many as the sum has, whatever lanes the stage has
// that it reads beside: half vectors are loaded in half of the time.
TEST_F(EstimateTest, SharedValuesAreLoadedIntoTheLanesOfTheirSum) {
  target_.unit_bytes = target_.vector_bytes / 2;
  const Kernel product = kernel_of(matmul(input({64, 256}), input({256, 64})));
  const char* rows = "TILE r1 8; TILE r0 8; ORDER r0 r1 r2 r4 r3; VEC r3; UPCAST r4; ";
  const double alone = of(product, rows)[Resource::Loads];
  const double staged = of(product, cat(rows, "STAGE p1 all r2 r3; VEC r6"))[Resource::Loads];
  EXPECT_LT(staged, 1.3 * alone);
}

// A sum that no register has is stored by each step and loaded by the next, which waits for it.
TEST_F(EstimateTest, SumsThatNoRegisterHasWaitForMemory) {
  const Machine narrow = avx2_machine();
  const Kernel product = kernel_of(matmul(input({70, 768}), input({768, 768})));
  const auto chain = [&](std::string_view list) {
    return estimate(apply_options(product, parse_options(list)), narrow)[Resource::Chain];
  };
  // Two vectors and what both are multiplied with beside 14 sums: one more than 16 registers.
  EXPECT_GT(chain("TILE r0 7; UPCAST r3; TILE r1 16; TILE r4 8; UPCAST r4; VEC r5"),
            2.5 * chain("TILE r0 5; UPCAST r3; TILE r1 16; TILE r4 8; UPCAST r4; VEC r5") * 5 / 7);
}

// Rows along a window read what other rows' taps do: the vectors of all taps wait beside the sums.
TEST_F(EstimateTest, TapsOfAWindowWaitBesideItsRows) {
  const Machine narrow = avx2_machine();
  const auto stores = [&](int64_t taps, std::string_view list) {
    const Tensor x = input({1, 16, 30, 29 + taps}), weight = input({32, 16, 1, taps});
    const Kernel kernel = kernel_of(conv(x, weight, Tensor(), {}));
    return estimate(apply_options(kernel, parse_options(list)), narrow)[Resource::Stores];
  };
  const char* along = "TILE r2 10; UPCAST r5; UNROLL r4; TILE r0 8; VEC r6";
  const char* in_turn = "TILE r2 10; UPCAST r5; TILE r0 8; VEC r6";
  EXPECT_DOUBLE_EQ(stores(5, along), stores(5, in_turn)) << "10 sums, 5 taps and a row";
  EXPECT_GT(stores(9, along), 1.5 * stores(9, in_turn));
  EXPECT_DOUBLE_EQ(stores(9, "TILE r1 10; UPCAST r5; UNROLL r4; TILE r0 8; VEC r6"),
                   stores(9, "TILE r1 10; UPCAST r5; TILE r0 8; VEC r6"))
      << "rows of which none reads what another does";
}

// Of many taps, what the rows' next taps read waits instead, with the vectors of one tap.
TEST_F(EstimateTest, RowsOfAWindowWaitForItsNextTaps) {
  const Machine narrow = avx2_machine();
  const Kernel kernel = kernel_of(conv(input({1, 16, 30, 45}), input({32, 16, 1, 11}), {}, {}));
  const auto stores = [&](int64_t rows, bool is_unrolled) {
    const std::string list =
        cat("TILE r2 ", rows, "; UPCAST r5; ", is_unrolled ? "UNROLL r4; " : "",
            "TILE r0 16; TILE r6 8; UPCAST r6; VEC r7");
    return estimate(apply_options(kernel, parse_options(list)), narrow)[Resource::Stores];
  };
  EXPECT_DOUBLE_EQ(stores(5, true), stores(5, false)) << "10 sums, 5 rows and two vectors";
  EXPECT_GT(stores(6, true), 1.5 * stores(6, false));
}

// Whether indices are in order takes a mask of each vector, however narrow that is.
TEST_F(EstimateTest, OrdersOfIndicesTakeAMaskOfEachVector) {
  target_.unit_bytes = 32;
  const auto arithmetic = [&](const Tensor& t, std::string_view list) {
    return of(kernel_of(t), list)[Resource::Arithmetic];
  };
  const char* whole = "TILE r1 16; VEC r2";
  const char* half = "TILE r1 8; VEC r2";
  const Tensor x = add(input({64, 256}), input({64, 1}));
  EXPECT_DOUBLE_EQ(arithmetic(x, half), arithmetic(x, whole));
  const Tensor below = tril(x);
  EXPECT_GT(arithmetic(below, half), 1.3 * arithmetic(below, whole));
}

// What is told begins with what is wanted most.
TEST_F(EstimateTest, TellsWhatEachResourceTakes) {
  const Estimate e = of(kernel_of(neg(input({1 << 24}))), "TILE r0 16; VEC r1");
  EXPECT_TRUE(std::regex_match(
      text_of(e), std::regex(R"([0-9]+\.[0-9]{2} us by memory [0-9.]+(, [a-z 0-9]+ [0-9.]+)*)")))
      << text_of(e);
  EXPECT_EQ(text_of(Estimate()), "0.00 us");
}

}  // namespace
}  // namespace tiny
