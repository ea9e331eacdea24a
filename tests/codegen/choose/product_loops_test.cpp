// The loops that are chosen for products of named shapes: panels, tiles of rows, copies of what is
// read apart, and what is fetched ahead.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tensor/activation.h"
#include "tensor/elementwise.h"
#include "tensor/matmul.h"
#include "tensor/normalization.h"
#include "tensor/reduce.h"
#include "tests/support/choice.h"

namespace tiny {
namespace {

// A batch of pictures that no cache holds is walked once, through all four panels for each tile.
TEST_F(ChoiceTest, RowsInMemoryAreWalkedOnce) {
  const auto has_panels_outside = [&](int64_t rows) {
    const Tensor x = make_placeholder(context_, kFloat32, {rows, 64});
    return loops(x, matmul(x, constant({64, 128})), 0).starts_with("r_4_");
  };
  const int64_t held = context_->backend().machine().l3_bytes / (64 * 4);
  EXPECT_TRUE(has_panels_outside(held / 2));
  EXPECT_FALSE(has_panels_outside(held * 2));
}

// A gradient of weights that is subtracted from them as it is summed: a step of the rows is a page
// from the last, so a tile of them is copied, and meets all columns before the next.
TEST_F(ChoiceTest, RowsWhoseStepsArePagesApartAreCopiedOnce) {
  const Machine target = avx512_machine();
  const auto list = [&](int64_t steps, int64_t rows) {
    const Tensor weights = make_placeholder(context_, kFloat32, {rows, 256});
    const Tensor out = make_placeholder(context_, kFloat32, {steps, rows});
    const Tensor in = make_placeholder(context_, kFloat32, {steps, 256});
    const UOp stored = sub(weights, matmul(permute(out, {1, 0}), in)).node();
    const Schedule schedule = make_schedule({&stored, 1}, target);
    return to_text(choose_options(prepare_kernel(schedule.kernels.front().kernel, target), target));
  };
  const int64_t far = 2 * target.l2_bytes / (512 * 4);  // rows of 512 steps
  for (const char* part : {"ORDER r0 r1 r2", "STAGE p2 all", "STAGE p1 r0"})
    EXPECT_NE(list(512, far).find(part), std::string::npos) << part << ": " << list(512, far);
  EXPECT_EQ(list(512, 512).find(" all "), std::string::npos) << "they are near: " << list(512, 512);
}

// A recurrence's weights, half of the second level of cache, are walked once for two tiles of rows,
// and fetched a tile of columns ahead; those that stay there beside all else are left as they are.
TEST_F(ChoiceTest, ColumnsThatAreFarAreWalkedOnceAndFetchedAhead) {
  const Machine target = avx512_machine();
  const auto list = [&](int64_t part) {
    const int64_t steps = target.l2_bytes / part / (256 * 4);
    const Tensor rows = make_placeholder(context_, kFloat32, {20, steps});
    const Tensor weights = make_placeholder(context_, kFloat32, {steps, 256});
    const UOp stored = matmul(rows, weights).node();
    const Schedule schedule = make_schedule({&stored, 1}, target);
    return to_text(choose_options(prepare_kernel(schedule.kernels.front().kernel, target), target));
  };
  for (const char* what : {"ORDER r1 r0", "UNROLL r6", "PREFETCH p1 r0"})
    EXPECT_NE(list(2).find(what), std::string::npos) << what << ": " << list(2);
  EXPECT_EQ(list(8).find("ORDER"), std::string::npos) << list(8);
}

// Steps of near rows that no processor fetches ahead, 2 KB apart: a tile of these rows meets all
// panels, which lie side by side; rows that are nearer to each other are read for each panel.
TEST_F(ChoiceTest, RowsWhoseStepsAreApartMeetAllPanels) {
  const Machine target = avx512_machine();
  const auto list = [&](int64_t rows) {
    const Tensor out = make_placeholder(context_, kFloat32, {256, rows});
    const Tensor in = make_placeholder(context_, kFloat32, {256, 256});
    const UOp stored = matmul(permute(out, {1, 0}), in).node();
    const Schedule schedule = make_schedule({&stored, 1}, target);
    return to_text(choose_options(prepare_kernel(schedule.kernels.front().kernel, target), target));
  };
  EXPECT_NE(list(512).find("STAGE p1 all"), std::string::npos) << list(512);
  EXPECT_NE(list(256).find("STAGE p1 r1"), std::string::npos) << list(256);
}

// Of rows a multiple of a page apart only so many steps are near each other in the second level of
// cache as its sets hold; a line more between them, and they lie in all sets.
TEST_F(ChoiceTest, RowsThatMeetInFewSetsAreSummedInShorterBlocks) {
  const Machine target = avx512_machine();
  const auto steps = [&](int64_t rows) {
    const Tensor out = make_placeholder(context_, kFloat32, {512, rows});
    const Tensor in = make_placeholder(context_, kFloat32, {512, 768});
    const UOp stored = matmul(permute(out, {1, 0}), in).node();
    const Schedule schedule = make_schedule({&stored, 1}, target);
    const std::vector<Option> list =
        choose_options(prepare_kernel(schedule.kernels.front().kernel, target), target);
    const auto cut = std::ranges::find_if(
        list, [](const Option& o) { return o.kind == OptionKind::Tile && o.range == 2; });
    return cut == list.end() ? 512 : cut->amount;
  };
  EXPECT_EQ(steps(3072), 64);
  EXPECT_EQ(steps(3072 + 16), 256);
}

// A residual that is larger than the cache is fetched for the tile that comes next.
TEST_F(ChoiceTest, AnEpilogueIsFetchedAhead) {
  const Machine target = avx512_machine();
  const auto list = [&](int64_t rows) {
    const Tensor x = make_placeholder(context_, kFloat32, {rows, 128});
    const Tensor weights = make_placeholder(context_, kFloat32, {128, 512});
    const Tensor residual = make_placeholder(context_, kFloat32, {rows, 512});
    const UOp stored = add(matmul(x, weights), residual).node();
    const Schedule schedule = make_schedule({&stored, 1}, target);
    return to_text(choose_options(prepare_kernel(schedule.kernels.front().kernel, target), target));
  };
  const int64_t far = target.l2_bytes / (512 * 4);
  EXPECT_NE(list(2 * far).find("PREFETCH p2 r0"), std::string::npos) << list(2 * far);
  EXPECT_EQ(list(far / 4).find("PREFETCH p2"), std::string::npos) << list(far / 4);
}

// So are the rows of the next tile and the places of its sums, where the second level of cache does
// not hold both; rows that lie side by side in a line are there with those before.
TEST_F(ChoiceTest, RowsOfTheNextTileAreFetchedAhead) {
  const Machine target = avx512_machine();
  const auto list = [&](int64_t rows, bool turns) {
    const Tensor x = turns ? permute(make_placeholder(context_, kFloat32, {128, rows}), {1, 0})
                           : make_placeholder(context_, kFloat32, {rows, 128});
    const Tensor weights = make_placeholder(context_, kFloat32, {128, 128});
    const UOp stored = matmul(x, weights).node();
    const Schedule schedule = make_schedule({&stored, 1}, target);
    return to_text(choose_options(prepare_kernel(schedule.kernels.front().kernel, target), target));
  };
  const int64_t half = target.l2_bytes / 2 / (128 * 4);  // of the level for each
  const std::string far = list(half + 64, false);
  EXPECT_NE(far.find("PREFETCH p0 r0"), std::string::npos) << far;
  EXPECT_NE(far.find("PREFETCH p2 r0"), std::string::npos) << far;
  EXPECT_EQ(list(half - 64, false).find("PREFETCH p0"), std::string::npos)
      << list(half - 64, false);
  EXPECT_EQ(list(half + 64, true).find("PREFETCH p0"), std::string::npos) << list(half + 64, true);
}

// Panels of 32 columns outermost, tiles of 14 rows, all steps: the panel stays in the cache.
TEST_F(ChoiceTest, PanelsInPlaceAreWalkedInOnePass) {
  const Tensor x = make_placeholder(context_, kFloat32, {1, 256, 14, 14});
  const Tensor y = pointwise(pointwise(pointwise(x, 1024), 256), 64);
  EXPECT_EQ(loops(x, y, 1), "r_8_14_512_2_14_2_16");
}

TEST_F(ChoiceTest, FewRowsAreWalkedInOnePassOfEachPanel) {
  const Tensor x = make_placeholder(context_, kFloat32, {32, 768});
  EXPECT_EQ(loops(x, matmul(relu(matmul(x, constant({768, 3072}))), constant({3072, 768})), 0),
            "r_96_3_768_11_2_16");
}

// Rows of a caller lie as they do: those a page apart are copied for a block of steps at a time.
// What comes from beyond the caches is fetched a panel ahead, though no pass is made over one.
TEST_F(ChoiceTest, APanelThatFewRowsWalkOnceIsFetchedAhead) {
  const Tensor x = testing::float_input(context_, {7, 1024});
  const int64_t blocks = context_->backend().machine().l3_bytes / (1024 * 32 * 4);
  const auto list = [&](int64_t n) { return options(x, matmul(x, constant({1024, n})), 0); };
  EXPECT_TRUE(list(32 * (blocks / 3 + 2)).ends_with("; PREFETCH p1 r1"))
      << list(32 * (blocks / 3 + 2));
  EXPECT_EQ(list(32 * (blocks / 4)).find("PREFETCH"), std::string::npos);
}

// Of a batch of products the rows of the next one are fetched, where all of them are in no cache.
TEST_F(ChoiceTest, RowsOfTheNextProductAreFetchedAhead) {
  constexpr int64_t kSteps = 3200;
  const auto list = [&](int64_t batch) {
    const Ints shape{batch, kSteps, 32};
    const Tensor rows = permute(testing::float_input(context_, shape), {0, 2, 1});
    return list_of_inputs(matmul(rows, testing::float_input(context_, shape)));
  };
  const int64_t far = avx512_machine().l3_bytes / (kSteps * 32 * 4);
  EXPECT_TRUE(list(far).ends_with("; PREFETCH p1 r0")) << list(far);
  EXPECT_EQ(list(4).find("PREFETCH p1"), std::string::npos) << list(4);
}

TEST_F(ChoiceTest, RowsThatCollideAreCopiedInBlocks) {
  const Tensor x = make_placeholder(context_, kFloat32, {1024, 1024});
  EXPECT_EQ(loops(x, matmul(x, constant({1024, 1024})), 0), "r_2_4_79_16_128_2_13_2_16");
}

// With few tiles of rows each panel is walked in one pass: a copy would be read once, unless it is
// one of all rows.
TEST_F(ChoiceTest, RowsThatCollideLieAsTheyDoForOnePanel) {
  const Tensor x = make_placeholder(context_, kFloat32, {64, 4096});
  const std::string list = options(x, matmul(x, constant({4096, 256})), 0);
  EXPECT_EQ(list.find("STAGE p0"), std::string::npos) << list;
  EXPECT_NE(list.find("UNROLL"), std::string::npos) << list;
  const Tensor near = make_placeholder(context_, kFloat32, {64, 1024});
  const std::string all = options(near, matmul(near, constant({1024, 512})), 0);
  EXPECT_NE(all.find("STAGE p0 all r5 r0 r2 pad 16; TILE r7 16; VEC r9"), std::string::npos) << all;
  const Tensor many = make_placeholder(context_, kFloat32, {1024, 1024});
  const std::string blocks = options(many, matmul(many, constant({1024, 1024})), 0);
  EXPECT_NE(blocks.find("STAGE p0"), std::string::npos) << blocks;
}

// Meanwhile a part of the next rows is fetched, and the place that their sums are added to; with
// few rows both are in the cache.
TEST_F(ChoiceTest, BlocksOfLargeProductsFetchTheNextRowsAndTheirPlace) {
  const auto list = [&](int64_t rows) {
    const Tensor x = make_placeholder(context_, kFloat32, {rows, 1024});
    return options(x, matmul(x, constant({1024, 1024})), 0);
  };
  EXPECT_TRUE(list(1024).ends_with("; PREFETCH p0 r5; PREFETCH p2 r5"));
  EXPECT_EQ(list(128).find("PREFETCH p2"), std::string::npos);
  // Panels of 1024 steps lie 128 KB apart: their blocks would share the sets of the cache.
  EXPECT_NE(list(1024).find("STAGE p1"), std::string::npos);
}

// Columns are stored side by side: an operand that lies the other way is turned on the way to its
// panel, by squares.  Blocks of steps and of columns are alike, so that none needs guards.
TEST_F(ChoiceTest, PanelsOfProductsOfInputs) {
  const auto list = [&](const Tensor& product) {
    const std::string text = list_of_inputs(product);
    return text.substr(0, text.find("; VEC"));
  };
  const auto input = [&](int64_t rows, int64_t columns) {
    return testing::float_input(context_, {rows, columns});
  };
  for (const int64_t columns : {3072, 512})
    EXPECT_TRUE(
        list(matmul(input(128, 768), permute(input(columns, 768), {1, 0}))).find("STAGE p1") !=
        std::string::npos)
        << columns;
  EXPECT_EQ(list(matmul(input(384, 1000), input(1000, 768))),
            "TILE r2 250; TILE r1 384; TILE r4 48; TILE r5 16; TILE r0 9; "
            "ORDER r1 r2 r0 r4 r3 r7 r5 r6");
}

// What a gradient of weights sums over comes in blocks that stay near: a few tiles of rows read a
// block as it lies, more of them a copy.
TEST_F(ChoiceTest, BlocksThatAreReadAFewTimesAreNotCopied) {
  const auto list = [&](int64_t steps, int64_t rows) {
    const Tensor out = testing::float_input(context_, {steps, rows});
    const Tensor in = testing::float_input(context_, {steps, 240});
    return list_of_inputs(matmul(permute(in, {1, 0}), out));
  };
  const auto has = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  constexpr int64_t kFar = 12544;
  for (const int64_t rows : {24, 40}) {
    EXPECT_TRUE(has(list(kFar, rows), "TILE r2 256; ")) << list(kFar, rows);
    EXPECT_FALSE(has(list(kFar, rows), "STAGE")) << list(kFar, rows);
  }
  EXPECT_TRUE(has(list(kFar, 96), "STAGE")) << list(kFar, 96);
  EXPECT_FALSE(has(list(200, 24), "TILE r2 ")) << list(200, 24);
}

// An operand that lies the other way is laid out again by squares of 16 times 16, which the
// renderer turns in registers.
TEST_F(ChoiceTest, OperandsAreTurnedBySquares) {
  const Tensor a = testing::float_input(context_, {256, 256});
  const Tensor b = testing::float_input(context_, {256, 256});
  const UOp product = matmul(a, permute(b, {1, 0})).node();
  const Schedule schedule = make_schedule({&product, 1}, avx512_machine());
  const std::string list = to_text(choose_options(
      prepare_kernel(schedule.kernels.front().kernel, avx512_machine()), avx512_machine()));
  EXPECT_NE(list.find("VEC r9; UPCAST r8"), std::string::npos) << list;
}

// Rows of both operands along which a sum has its lanes are multiplied with each other: a load for
// each is shared by a tile of the other's.
TEST_F(ChoiceTest, FoldedSumsShareTheLoadsOfBothOperands) {
  const Tensor a = make_placeholder(context_, kFloat32, {17, 1000});
  const Tensor b = make_placeholder(context_, kFloat32, {31, 1000});
  const std::string both = list_of_inputs(matmul(a, permute(b, {1, 0})));
  EXPECT_TRUE(has_options("; " + both, {"TILE r1 4", "TILE r0 4", "UPCAST r3", "UPCAST r4"}))
      << both;
  const Tensor row = make_placeholder(context_, kFloat32, {1, 1000});
  const std::string one = list_of_inputs(matmul(row, permute(b, {1, 0})));
  EXPECT_EQ(std::ranges::count(one, 'U'), 2) << one << ": of rows, and of vectors";
}

// A gate's activations take as long as its sum: lanes of its steps would leave them one by one.
TEST_F(ChoiceTest, ShortSumsOfMuchArithmeticHaveLanesAlongOutputs) {
  const Tensor x = make_placeholder(context_, kFloat32, {1, 16});
  const Tensor w = make_placeholder(context_, kFloat32, {16, 16});
  const Tensor sums = matmul(x, permute(w, {1, 0}));
  const std::string plain = list_of_inputs(sums);
  EXPECT_TRUE(has_options(plain, {"VEC r1"})) << plain << ": steps, which lie side by side";
  const std::string gated = list_of_inputs(tanh(sums) * sigmoid(sums));
  EXPECT_TRUE(has_options(gated, {"VEC r0"})) << gated;
}

// A matrix whose rows are pages apart is read in runs as long as registers allow, from memory eight
// rows side by side to their end; one row after the other comes faster in runs of 12 lines.
TEST_F(ChoiceTest, AVectorTimesALargeMatrixReadsLongRuns) {
  const Tensor cached = make_placeholder(context_, kFloat32, {384, 3072});
  EXPECT_EQ(loops(cached, matmul(constant({1, 384}), cached), 0), "r_8_24_16_384");
  const Tensor large = make_placeholder(context_, kFloat32, {3072, 3072});
  EXPECT_EQ(loops(large, matmul(constant({1, 3072}), large), 0), "r_384_48_4_16_8");
  const Tensor odd = make_placeholder(context_, kFloat32, {3073, 3072});
  EXPECT_EQ(loops(odd, matmul(constant({1, 3073}), odd), 0), "r_16_12_16_3073");
  const Tensor small = make_placeholder(context_, kFloat32, {128, 1024});
  EXPECT_EQ(loops(small, matmul(constant({1, 128}), small), 0), "r_3_22_16_128");
}

// So are few rows multiplied with it where a vector is less than a line, in tiles of all rows.
TEST_F(ChoiceTest, FewRowsTimesALargeMatrixWalkItsRowsToTheirEnd) {
  compile_for_avx2();
  const Tensor x = make_placeholder(context_, kFloat32, {768, 3072});
  EXPECT_EQ(options(x, matmul(constant({7, 768}), x), 0),
            "TILE r2 8; UNROLL r3; ORDER r2 r1 r0 r3; UPCAST r0; TILE r1 16; TILE r4 8; UPCAST r4; "
            "VEC r5");
  EXPECT_EQ(options(x, matmul(constant({40, 768}), x), 0).find("ORDER r2 r1"), std::string::npos);
}

// What a row shares with one vector alone is a load for each product: tiles are of two vectors,
// also where eleven rows of one would fill the registers as well.
TEST_F(ChoiceTest, RowsShareTheirLoadsAmongVectors) {
  compile_for_avx2();
  const Tensor x = make_placeholder(context_, kFloat32, {50, 768});
  const std::string list = options(x, matmul(x, constant({768, 768})), 0);
  EXPECT_NE(list.find("TILE r0 6"), std::string::npos) << list;
}

// Eight rows are four and four, which have sums enough to wait for none: not six and two.
TEST_F(ChoiceTest, FewRowsAreCutIntoTilesOfNearlyEqualSize) {
  compile_for_avx2();
  const Tensor x = make_placeholder(context_, kFloat32, {8, 768});
  EXPECT_NE(options(x, matmul(x, constant({768, 3072})), 0).find("TILE r0 4"), std::string::npos);
}

// A panel's successor is fetched while 14 tiles of rows are multiplied with it, as 98 would be too
// many to gain from it.
TEST_F(ChoiceTest, TheNextPanelIsFetchedWhereFewPassesAreMade) {
  const Tensor x = make_placeholder(context_, kFloat32, {1, 256, 14, 14});
  EXPECT_TRUE(options(x, pointwise(pointwise(x, 1024), 64), 0).ends_with("; PREFETCH p1 r0"));
  const Tensor wide = make_placeholder(context_, kFloat32, {1, 64, 56, 56});
  const Tensor y = pointwise(pointwise(wide, 256), 64);
  EXPECT_EQ(options(wide, y, 1).find("PREFETCH p1"), std::string::npos) << options(wide, y, 1);
}

// Three panels are an uneven share for two cores; tiles of rows are many.  Panels that are far
// larger than what would be gained are not read by both.
TEST_F(ChoiceTest, CoresShareTilesOfRowsWherePanelsAreFew) {
  Flags flags = testing::flags_for("null");
  flags.cache = 0;
  for (const int32_t threads : {1, 2}) {
    flags.threads = threads;
    context_ = make_ref<Context>(flags);
    const auto product = [&](int64_t size, int64_t in, int64_t out) {
      const Tensor x = make_placeholder(context_, kFloat32, to_shape({1, size, size, in}));
      return loops(x, stored(pointwise(permute(x, {0, 3, 1, 2}), out)), 0);
    };
    EXPECT_EQ(product(27, 192, 96), threads == 1 ? "r_3_61_96_2_12_2_16" : "r_61_3_96_2_12_2_16");
    EXPECT_EQ(product(27, 256, 64), threads == 1 ? "r_2_61_128_2_12_2_16" : "r_61_2_128_2_12_2_16");
    EXPECT_EQ(product(14, 576, 224), "r_7_14_288_2_14_2_16");
  }
}

// Two cores share the rows of a batch where all read and stored beside the panels is more than a
// copy of these for each of four parts (of rows, or of what else only they step with); else
// columns. Of a gradient for weights each copies all panels, within its rows.
TEST_F(ChoiceTest, CoresShareRowsThatAreMoreThanCopiesOfPanels) {
  Machine machine = avx512_machine();
  const auto list = [&](const Tensor& value, int32_t cores) {
    machine.cores = cores;
    const UOp stored = context_->graph().make(Op::Contiguous, {value.node()});
    const Schedule schedule = make_schedule({&stored, 1}, machine);
    return to_text(
        choose_options(prepare_kernel(schedule.kernels.front().kernel, machine), machine));
  };
  const auto product = [&](int64_t rows, int64_t steps, int64_t columns) {
    return matmul(
        make_placeholder(context_, kFloat32, to_shape({rows, steps})),
        permute(make_placeholder(context_, kFloat32, to_shape({columns, steps})), {1, 0}));
  };
  const auto is_shared_by_rows = [&](const std::string& text) {
    return text.find("TILE r0 ") < text.find("ORDER r0 ") && text.ends_with("; THREAD r0");
  };
  EXPECT_PRED1(is_shared_by_rows, list(product(1024, 512, 128), 2));
  EXPECT_NE(list(product(1024, 512, 128), 2).find("TILE r0 260;"), std::string::npos);
  EXPECT_NE(list(product(512, 768, 3072), 2).find("; THREAD r1"), std::string::npos)
      << list(product(512, 768, 3072), 2);
  EXPECT_EQ(list(product(1024, 512, 128), 1).find("TILE r0 260;"), std::string::npos);
  const Tensor of_weights =
      matmul(permute(make_placeholder(context_, kFloat32, to_shape({1024, 512})), {1, 0}),
             make_placeholder(context_, kFloat32, to_shape({1024, 128})));
  const std::string text = list(of_weights, 2);
  EXPECT_EQ(text.find(" all "), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("; THREAD r0")) << text;
  // 37 tiles of 14 are 19 and 18; as four parts they would be 20 and 17.
  EXPECT_NE(text.find("TILE r0 266;"), std::string::npos) << text;
}

// The means of 256 channels, side by side in memory, are computed once, with lanes along them; the
// products of the classifier have lanes along what they sum.
TEST_F(ChoiceTest, AStagedMeanHasLanesAlongChannels) {
  const Tensor x = make_placeholder(context_, kFloat32, {1, 64, 7, 7});
  const Tensor means = reshape(mean(pointwise(x, 256), {2, 3}), to_shape({1, 256}));
  const Tensor weights = permute(constant({1000, 256}), {1, 0});
  const std::string list = options(x, matmul(means, weights), 1);
  EXPECT_TRUE(list.starts_with("STAGE v"));
  EXPECT_NE(list.find("VEC r6; TILE r3 64; TILE r7 16; UPCAST r7; VEC r8"), std::string::npos)
      << list;
}

// A row that is computed is computed once, before it is multiplied with any panel.
TEST_F(ChoiceTest, ComputedRowsAreMultipliedWithAllPanelsBeforeTheNext) {
  const Tensor x = make_placeholder(context_, kFloat32, {1, 28, 28, 256});
  const Tensor normal = mul(permute(x, {0, 3, 1, 2}), constant({256, 1, 1}));
  const Tensor y = permute(pointwise(relu(normal), 128), {0, 2, 3, 1});
  EXPECT_EQ(loops(x, y, 0), "r_56_4_128_2_14_2_16");
}

// Where lanes run along places instead, what is computed for them is computed once for all
// channels.
TEST_F(ChoiceTest, ComputedLanesAreStagedAsTheyAreMultiplied) {
  const Tensor x = make_placeholder(context_, kFloat32, {1, 64, 56, 12});
  const Tensor y = conv(mul(x, sigmoid(x)), constant({256, 64, 1, 1}), constant({256}), Window());
  const std::string list = options(x, y, 0);
  EXPECT_NE(list.find("STAGE v"), std::string::npos) << list;
  EXPECT_EQ(list.find("STAGE p"), std::string::npos) << list;
}

// Whatever the vectors and the tiles of rows that they leave, a list fits its kernel.
TEST_F(ChoiceTest, ListsFitForAllVectors) {
  for (const Machine& target : {avx2_machine(), avx512_machine()})
    for (const int64_t size : {5, 7, 14, 15, 23})
      for (const int64_t channels : {7, 64, 500, 1024}) {
        const Tensor x = testing::float_input(context_, {1, channels, size, size});
        const Tensor y = pointwise(x, 2 * channels, 2);
        const UOp stored = context_->graph().make(Op::Contiguous, {y.node()});
        const Schedule schedule = make_schedule({&stored, 1}, target);
        for (const ScheduledKernel& k : schedule.kernels)
          EXPECT_NO_THROW(choose_options(prepare_kernel(k.kernel, target), target))
              << target.vector_bytes << " " << size << " " << channels;
      }
}

// Columns that the first level of cache does not hold come from the second for every tile of rows:
// the more rows in one, the fewer loads.
TEST_F(ChoiceTest, ColumnsOfManyStepsAreReadForMoreRows) {
  const auto list = [&](int64_t steps) {
    return list_of_inputs(matmul(testing::float_input(context_, {51, steps}),
                                 testing::float_input(context_, {steps, 52})));
  };
  EXPECT_TRUE(list(100).starts_with("TILE r0 4; UPCAST r3; TILE r1 64;")) << list(100);
  EXPECT_FALSE(list(860).starts_with("TILE r0 4;")) << list(860);
}

// The matrix that one normalised row is multiplied with lies along its columns: lanes too.
TEST_F(ChoiceTest, AMatrixAfterReductionsOfOneRowHasLanesAlongItsColumns) {
  const Tensor x = testing::float_input(context_, {1, 512});
  const Tensor y = matmul(layer_norm(x, Tensor(), Tensor(), 1, 1e-5), constant({512, 256}));
  EXPECT_EQ(loops(x, y, 0), "r_8_128_4_2_16_16_2_16_16_2_16");
}

}  // namespace
}  // namespace tiny
