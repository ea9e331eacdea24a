// The loops that are chosen for rows of named shapes without products: transposes, gathers, sums,
// normalised rows and what passes the caches.
#include <gtest/gtest.h>

#include <string>

#include "cost/processors.h"
#include "tensor/activation.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/normalization.h"
#include "tensor/reduce.h"
#include "tensor/scan.h"
#include "tests/support/choice.h"

namespace tiny {
namespace {

// What is read along rows and stored along columns turns by squares, bytes in pieces of 16; what is
// stored is walked as it lies.
TEST_F(ChoiceTest, WhatIsStoredAcrossTurnsBySquares) {
  const auto list = [&](const Ints& shape, DType dtype, Machine target) {
    const Tensor x = make_placeholder(context_, dtype, to_shape(shape));
    const UOp stored = context_->graph().make(Op::Contiguous, {permute(x, {1, 0}).node()});
    const Schedule schedule = make_schedule({&stored, 1}, target);
    return to_text(choose_options(prepare_kernel(schedule.kernels.front().kernel, target), target));
  };
  EXPECT_EQ(list({512, 2048}, kFloat32, avx512_machine()),
            "TILE r1 16; TILE r0 16; VEC r3; UPCAST r2");
  EXPECT_EQ(list({512, 2048}, kFloat32, avx2_machine()), "TILE r1 8; TILE r0 8; VEC r3; UPCAST r2");
  EXPECT_EQ(list({512, 2048}, kUInt8, avx512_machine()),
            "TILE r1 16; TILE r0 64; VEC r3; UPCAST r2");
  EXPECT_EQ(list({512, 2048}, kUInt8, avx2_machine()), "TILE r1 16; TILE r0 32; VEC r3; UPCAST r2");
  EXPECT_EQ(list({512, 2048}, kFloat64, avx2_machine()).find("UPCAST r2"), std::string::npos);
}

// An index is checked once for all that is read by it: lanes lie along the rest, as wide as they.
TEST_F(ChoiceTest, WhatIsReadByACheckedIndexHasLanes) {
  const Tensor rows = make_placeholder(context_, kInt64, {64});
  const Tensor x = make_placeholder(context_, kFloat32, {1000, 256});
  const UOp stored = context_->graph().make(Op::Contiguous, {gather(x, rows, 0).node()});
  const Machine target = avx512_machine();
  const Schedule schedule = make_schedule({&stored, 1}, target);
  const Kernel kernel = prepare_kernel(schedule.kernels.front().kernel, target);
  const std::string list = to_text(choose_options(kernel, target));
  EXPECT_TRUE(has_options(list, {"TILE r1 64", "TILE r2 16", "VEC r3"})) << list;
}

// Columns that are looked up, of rows that are too: a processor that gathers lanes faster than it
// moves them has lanes along the rows; another along what is read by steps.
TEST_F(ChoiceTest, LanesAreGatheredWhereMovingThemTakesLonger) {
  const auto list = [&](const char* processor) {
    Machine machine = avx512_machine();
    imitate(*find_processor(processor), machine);
    const Tensor x = make_placeholder(context_, kFloat32, {2, 16, 52, 18});
    const Tensor rows = make_placeholder(context_, kInt64, {40});
    const Tensor columns = make_placeholder(context_, kInt64, {5});
    const Tensor found = gather(gather(x, rows, 0), columns, 3);
    const UOp stored = context_->graph().make(Op::Contiguous, {found.node()});
    const Schedule schedule = make_schedule({&stored, 1}, machine);
    return to_text(
        choose_options(prepare_kernel(schedule.kernels.front().kernel, machine), machine));
  };
  EXPECT_TRUE(has_options(list("zen5"), {"TILE r1 16", "VEC r4", "UPCAST r3"})) << list("zen5");
  EXPECT_TRUE(has_options(list("emeraldrapids"), {"TILE r0 8", "VEC r4"})) << list("emeraldrapids");
}

// Each lane reads a line of its own: it is walked to its end before other lines are read.
TEST_F(ChoiceTest, WhatLanesWalkTheirLinesAlongIsInnermost) {
  const Tensor x = make_placeholder(context_, kFloat64, {512, 2048});
  EXPECT_EQ(loops(x, neg(permute(x, {1, 0})), 0), "E_64_2048_8");
  const Tensor short_lines = testing::float_input(context_, {512, 4});
  EXPECT_EQ(loops(short_lines, neg(permute(short_lines, {1, 0})), 0), "E_4_8_4_16")
      << "no line is left after it was read";
}

// While a row is stored, the next is computed and the one after that read, if they all stay in the
// first level of cache.  What is in no cache is asked for sooner.
TEST_F(ChoiceTest, LoopsOfRowsOverlap) {
  const Machine target = avx512_machine();
  const auto list = [&](const Tensor& value) {
    const UOp stored = context_->graph().make(Op::Contiguous, {value.node()});
    const Schedule schedule = make_schedule({&stored, 1}, target);
    return to_text(choose_options(prepare_kernel(schedule.kernels.front().kernel, target), target));
  };
  const int64_t far = target.l3_bytes / 4096 + 1;
  for (const int64_t rows : {int64_t{64}, far}) {
    const Tensor x = testing::float_input(context_, {rows, 1024});
    for (const Tensor& value : {softmax(x, 1), layer_norm(x, Tensor(), Tensor(), 1, 1e-5)}) {
      EXPECT_NE(list(value).find("OVERLAP r0"), std::string::npos);
      EXPECT_EQ(list(value).find("PREFETCH p0 r0") != std::string::npos, rows == far);
    }
    EXPECT_EQ(list(softmax(x, 0)).find("OVERLAP"), std::string::npos);  // rows are lanes
  }
  for (const Ints& shape : {Ints{4, 1024}, Ints{64, 24}, Ints{64, target.l1_bytes / 4}}) {
    const Tensor x = testing::float_input(context_, shape);
    EXPECT_EQ(list(softmax(x, 1)).find("OVERLAP"), std::string::npos);
  }
}

// A long row is walked in the cache: meanwhile the next one comes, unless all are there anyway.
TEST_F(ChoiceTest, TheNextRowIsFetchedWhileOneIsWalked) {
  const auto list = [&](int64_t rows) {
    const Tensor x = testing::float_input(context_, {rows, 8192});
    const Tensor value = softmax(x, 1);
    const UOp stored = context_->graph().make(Op::Contiguous, {value.node()});
    const Schedule schedule = make_schedule({&stored, 1}, avx512_machine());
    return to_text(choose_options(prepare_kernel(schedule.kernels.front().kernel, avx512_machine()),
                                  avx512_machine()));
  };
  EXPECT_NE(list(512).find("PREFETCH p0 r0"), std::string::npos);
  EXPECT_EQ(list(4).find("PREFETCH"), std::string::npos);
}

// What is stored does not fit the last cache: it need not pass through it.
TEST_F(ChoiceTest, LargeResultsPassTheCaches) {
  const auto list = [&](const Tensor& value, int64_t bypass_bytes, Machine target) {
    target.bypass_bytes = bypass_bytes;
    const UOp stored = context_->graph().make(Op::Contiguous, {value.node()});
    const Schedule schedule = make_schedule({&stored, 1}, target);
    return to_text(choose_options(prepare_kernel(schedule.kernels.front().kernel, target), target));
  };
  const Tensor x = testing::float_input(context_, {4096, 1024});
  constexpr int64_t kBytes = int64_t{4096} * 1024 * 4;
  for (const Tensor& value : {relu(x), softmax(x, 1)})
    for (const Machine& target : {avx512_machine(), avx2_machine()}) {
      EXPECT_NE(list(value, kBytes - 1, target).find("BYPASS p1"), std::string::npos);
      EXPECT_EQ(list(value, kBytes, target).find("BYPASS"), std::string::npos);
      EXPECT_EQ(list(value, 0, target).find("BYPASS"), std::string::npos);
    }
  EXPECT_EQ(list(relu(x), 1, Machine(generic_target())).find("BYPASS"),
            std::string::npos);  // no vectors
}

// Channels last, what is stored has lanes that lie apart along the pixels, and much is read beside:
// the row's last loop has lanes all the same.
TEST_F(ChoiceTest, RowsAreStoredByLanesThatLieApart) {
  const Tensor x = make_placeholder(context_, kFloat32, {32, 1024});
  const Tensor gain = make_placeholder(context_, kFloat32, {32, 1024});
  const auto normal = [](const Tensor& t) {
    const Tensor apart = t - mean(t, {1}, true);
    return apart / sqrt(mean(apart * apart, {1}, true));
  };
  Tensor last = normal(normal(x) * gain);
  for (int i = 0; i < 16; ++i) last = last * make_placeholder(context_, kFloat32, {32, 1024});
  const std::string list = list_of_inputs(permute(last, {1, 0}));
  EXPECT_TRUE(has_options(list, {"TILE r0 32", "VEC r15", "OVERLAP r1"})) << list;
}

// A value of many rows that is kept for a tile of them has the rows' lanes side by side.
TEST_F(ChoiceTest, KeptValuesHaveLanesSideBySide) {
  const Tensor x = make_placeholder(context_, kFloat32, {128, 1000});
  const std::string list = options(x, softmax(x, 0), 0);
  EXPECT_TRUE(has_options(list, {"UPCAST r4", "VEC r5"})) << list;
  EXPECT_NE(list.find("STAGE v"), std::string::npos) << list;
  EXPECT_TRUE(list.ends_with(" r4 r5")) << list;
}

// Sums of columns are as many side by side as registers hold: their rows are read in long runs.
TEST_F(ChoiceTest, SumsOfColumnsFillTheRegisters) {
  EXPECT_EQ(list_of_inputs(sum(make_placeholder(context_, kFloat32, {169, 320}), {0})),
            "TILE r0 320; TILE r2 16; UPCAST r2; VEC r3");
  EXPECT_EQ(list_of_inputs(sum(make_placeholder(context_, kFloat32, {169, 1000}), {0})),
            "TILE r0 336; TILE r2 16; UPCAST r2; VEC r3");
}

// Short rows of several reductions are computed side by side, long ones one after the other.
TEST_F(ChoiceTest, ShortRowsAreSideBySide) {
  const auto list = [&](int64_t size) {
    const Tensor x = make_placeholder(context_, kFloat32, {196, size});
    const Tensor centred = sub(x, mean(x, {1}, true));
    return list_of_inputs(mul(centred, rsqrt(mean(mul(centred, centred), {1}, true))));
  };
  for (const int64_t size : {48, 96})
    EXPECT_TRUE(has_options(list(size), {"TILE r0 4", "UPCAST r10"})) << list(size);
  EXPECT_EQ(list(320).find("TILE r0"), std::string::npos) << list(320);
}

// Sums of all before along an outer axis stay in registers while its steps are walked for as many
// vectors as half of these hold.
TEST_F(ChoiceTest, RunningSumsOfAnOuterAxisStayInRegisters) {
  const auto list = [&](const Ints& shape, int64_t axis) {
    return list_of_inputs(cumsum(make_placeholder(context_, kFloat32, to_shape(shape)), axis));
  };
  EXPECT_EQ(list({9, 13064}, 0), "TILE r1 256; TILE r2 16; UPCAST r2; VEC r3; ORDER r1 r0 r2 r3");
  EXPECT_EQ(list({36, 71, 92}, 1), "TILE r2 96; TILE r3 16; UPCAST r3; VEC r4");
}

}  // namespace
}  // namespace tiny
