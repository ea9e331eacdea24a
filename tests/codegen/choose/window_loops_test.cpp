// The loops that are chosen for convolutions and pools of named shapes: their rows, taps, borders
// and channels.
#include <gtest/gtest.h>

#include <string>

#include "tensor/activation.h"
#include "tensor/elementwise.h"
#include "tensor/reduce.h"
#include "tests/support/choice.h"

namespace tiny {
namespace {

// Panels of three vectors are multiplied as they lie, also where lanes are stored apart.
TEST_F(ChoiceTest, PanelsOfThreeVectorsAreNotCutWhereLanesAreStoredApart) {
  const Tensor x = make_placeholder(context_, kFloat32, {1, 64, 24, 32});
  const Window same{{1, 1}, {}, {0, 1}, {0, 1}};
  const Tensor y = conv(x, constant({48, 64, 1, 3}), Tensor(), same);
  EXPECT_EQ(loops(x, y, 0), "r_24_4_64_3_8_3_16") << options(x, y, 0);
}

// A strided convolution reads elements apart, in lines that hold little of what is wanted: a tile
// of them is copied for all panels where the second level of cache holds these, and lies as it does
// for few.
TEST_F(ChoiceTest, RowsThatAreReadApartAreCopied) {
  const Tensor x = make_placeholder(context_, kFloat32, {1, 256, 56, 56});
  const auto copies = [&](int64_t channels, int64_t stride) {
    return options(x, pointwise(x, channels, stride), 0).find("STAGE p0") != std::string::npos;
  };
  EXPECT_TRUE(copies(512, 2));
  EXPECT_FALSE(copies(128, 2));
}

// Rows of a batch lie far apart: the steps that lie in one line of each are side by side, around
// them the window's.
TEST_F(ChoiceTest, RowsOfABatchAreWalkedAlongTheirLines) {
  const Tensor x = permute(testing::float_input(context_, {32, 16, 16, 256}), {0, 3, 1, 2});
  const Tensor weight = testing::float_input(context_, {256, 256, 3, 3});
  const std::string list = list_of_inputs(stored(conv(x, weight, Tensor(), {})));
  EXPECT_NE(list.find("TILE r0 11"), std::string::npos) << list;
  EXPECT_NE(list.find(" r5 r6 r4 "), std::string::npos) << list;
}

// A filter's gradient sums over a batch and pictures: a panel holds images, as many in each, or
// the last of them would have guards around its steps.
TEST_F(ChoiceTest, PanelsOfASumOverABatchAreOfOneSize) {
  const Tensor x = permute(testing::float_input(context_, {128, 10, 10, 256}), {3, 0, 1, 2});
  const Tensor dy = permute(testing::float_input(context_, {128, 8, 8, 256}), {3, 0, 1, 2});
  const std::string list = list_of_inputs(permute(conv(x, dy, Tensor(), {}), {2, 3, 0, 1}));
  EXPECT_TRUE(list.starts_with("TILE r4 4;")) << list;
}

// Every tap of the filter reads all pictures again: those of a block stay in the second level
// beside its panel.
TEST_F(ChoiceTest, PicturesThatEachTapReadsStayNear) {
  const auto list = [&](int64_t size) {
    const Tensor x = permute(testing::float_input(context_, {128, size, size, 64}), {3, 0, 1, 2});
    const Tensor dy =
        permute(testing::float_input(context_, {128, size - 2, size - 2, 64}), {3, 0, 1, 2});
    return list_of_inputs(permute(conv(x, dy, Tensor(), {}), {2, 3, 0, 1}));
  };
  EXPECT_TRUE(list(8).starts_with("TILE r4 32;")) << list(8);
  EXPECT_TRUE(list(34).starts_with("TILE r4 1;")) << list(34);
}

// A few taps leave most of a vector empty, so that lanes lie along the pictures of a stride too,
// and the taps stand side by side.
TEST_F(ChoiceTest, ShortWindowsHaveNoLanesAlongTheirTaps) {
  for (const int64_t size : {14, 28, 57}) {
    const Tensor x = make_placeholder(context_, kFloat32, {1, 192, size, size});
    for (const int64_t kernel : {2, 3}) {
      const Window window{
          .strides = {2, 2}, .before = {1, 1}, .after = {1, 1}, .kernel = {kernel, kernel}};
      const std::string list = list_of_inputs(max_pool(x, window));
      EXPECT_EQ(list.find("TILE r4"), std::string::npos) << list;
      EXPECT_TRUE(has_options(list, {"UNROLL r4"})) << list;
    }
  }
}

// So do lanes of half a vector's outputs: a picture of 8 x 8, whose sums are quantised and gated.
TEST_F(ChoiceTest, SumsOfMuchArithmeticHaveLanesAlongHalfAVectorsOutputs) {
  const auto channels_last = [&](const Shape& shape) {
    return permute(make_placeholder(context_, kFloat32, shape), {0, 3, 1, 2});
  };
  const Tensor x = channels_last({1, 8, 8, 32});
  const Tensor w = channels_last({4, 3, 3, 32});
  const Window same{{1, 1}, {}, {1, 1}, {1, 1}};
  Tensor y = conv(x, w, Tensor(), same);
  for (int i = 0; i < 20; ++i)
    y = minimum(maximum(round(y * number(y, 0.37)), number(y, -128)), number(y, 127));
  const std::string list = list_of_inputs(y);
  EXPECT_TRUE(has_options(list, {"VEC r0"}) || has_options(list, {"VEC r1"})) << list;
}

// A small picture is walked for one vector of channels after the other, unless its rows share so
// few sets of the first level that it would not stay there.
TEST_F(ChoiceTest, SmallPicturesAreWalkedByChannels) {
  const auto list = [&](int64_t size, int64_t channels) {
    const Tensor x = make_placeholder(context_, kFloat32, {1, size, size, channels});
    return options(x, stored(depthwise(permute(x, {0, 3, 1, 2}))), 0);
  };
  EXPECT_EQ(list(7, 960),
            "UPCAST r0; UNROLL r3; UNROLL r4; TILE r2 16; VEC r5; ORDER r2 r0 r1 r5 r3 r4");
  EXPECT_EQ(list(7, 512).find("ORDER"), std::string::npos);
  EXPECT_EQ(list(28, 960).find("ORDER"), std::string::npos);
}

// Lanes along channels that are stored apart: tiles are of places that are stored side by side, not
// of the 83 rows that would fill tiles of 14 better, so that both turn by squares.
TEST_F(ChoiceTest, TilesAreOfPlacesThatAreStoredSideBySide) {
  const Tensor x = make_placeholder(context_, kFloat32, {1, 83, 92, 12});
  const Window same{{1, 1}, {}, {1, 1}, {1, 1}};
  const Tensor y = conv(permute(x, {0, 3, 1, 2}), constant({32, 12, 3, 3}), constant({32}), same);
  EXPECT_NE(options(x, y, 0).find("TILE r2 12; ORDER"), std::string::npos) << options(x, y, 0);
}

// The steps of a window along which a tile's rows lie are side by side: rows share what they load,
// of which registers hold as much as there are, and what padding leaves out is known.
TEST_F(ChoiceTest, RowsAlongAWindowHaveItsStepsSideBySide) {
  use("0");
  const auto list = [&](int64_t height, int64_t width, int64_t size, int64_t channels) {
    const Tensor x = make_placeholder(context_, kFloat32, {1, 64, height, width});
    Window window;
    window.before = window.after = {size / 2, size / 2};
    return options(x, conv(x, constant({channels, 64, size, size}), Tensor(), window), 0);
  };
  // Twelve rows of a width of 36, of one vector of channels, load 16 elements a turn.
  EXPECT_NE(list(55, 36, 5, 16).find("TILE r2 12;"), std::string::npos) << list(55, 36, 5, 16);
  EXPECT_NE(list(55, 36, 5, 16).find("UNROLL r5"), std::string::npos) << list(55, 36, 5, 16);
  // Three steps of two vectors gain nothing over tiles of more rows.
  EXPECT_EQ(list(56, 50, 3, 64).find("UNROLL r5"), std::string::npos) << list(56, 50, 3, 64);
}

// Where registers do not hold all that rows load, they hold what the next taps load again.  Few
// taps of a tile of few sums are side by side too: a loop over two would be left again at once.
TEST_F(ChoiceTest, RowsAlongAWindowHoldWhatTheNextTapsRead) {
  set_up("avx2", "0");
  for (const int64_t taps : {2, 11}) {
    const Tensor x = make_placeholder(context_, kFloat32, {1, 16, 31, 34 + taps - 1});
    const std::string list =
        options(x, conv(x, constant({48, 16, taps, taps}), Tensor(), Window()), 0);
    EXPECT_TRUE(has_options(list, {"TILE r2 5", "UNROLL r5"})) << list;
  }
}

// Rows of which most reach beyond the border ask at each load: others are taken.
TEST_F(ChoiceTest, RowsLieWhereFewReachBeyondTheBorder) {
  const Tensor x = make_placeholder(context_, kFloat32, {1, 64, 12, 31});
  Window window;
  window.before = window.after = {5, 5};
  const std::string list = options(x, conv(x, constant({80, 64, 11, 11}), Tensor(), window), 0);
  EXPECT_NE(list.find("TILE r2 "), std::string::npos) << list;
}

// Four rows of outputs read six rows of inputs; the nine steps are side by side.
TEST_F(ChoiceTest, RowsOfAWindowShareWhatTheyLoad) {
  const Tensor x = make_placeholder(context_, kFloat32, {1, 56, 56, 128});
  const Tensor y = stored(depthwise(permute(x, {0, 3, 1, 2})));
  const std::string list = options(x, y, 0);
  EXPECT_TRUE(has_options(list, {"TILE r0 5", "UPCAST r5", "UNROLL r3", "UNROLL r4"})) << list;
}

// The steps of a short window are side by side: what its padding leaves out is known then.
TEST_F(ChoiceTest, AShortWindowHasNoLoop) {
  const Tensor x = make_placeholder(context_, kFloat32, {4096, 16});
  const Tensor sums =
      reduce_as_is(windows(pad(x, {0, 15}, {0, 0}), {16}, {1}, {1}, {16}), Op::Add, {-1}, false);
  const std::string list = options(x, sums, 0);
  EXPECT_TRUE(has_options(list, {"VEC r1", "UNROLL r2"})) << list;
}

// Outputs of some channels share what lanes load, which often begins inside a line; one channel's
// share it along the window, and so do many's where a tile is as high as the image.
TEST_F(ChoiceTest, ChannelsShareAWindowsLoadsWhereThatIsLess) {
  const auto list = [&](const Ints& shape, int64_t channels) {
    const Tensor x = make_placeholder(context_, kFloat32, to_shape(shape));
    const Tensor weights = constant({channels, shape[1], 3, 3});
    return options(x, conv(x, weights, Tensor(), Window()), 0);
  };
  EXPECT_EQ(list({16, 3, 64, 64}, 16),
            "TILE r1 4; UPCAST r7; TILE r3 64; TILE r8 16; UPCAST r8; VEC r9");
  EXPECT_TRUE(list({16, 3, 64, 64}, 1).starts_with("TILE r1 11; UPCAST"))
      << list({16, 3, 64, 64}, 1);
}

// A loop over the taps of a wide, dilated window would ask for each row of a short image whether
// there is anything: side by side they know.
TEST_F(ChoiceTest, TapsBeyondTheBorderOfWholeRowsAreKnown) {
  const Tensor x = make_placeholder(context_, kFloat32, {1, 112, 20});
  Window window{.dilations = {4}, .before = {16}, .after = {16}};
  const std::string list = options(x, conv(x, constant({68, 112, 9}), Tensor(), window), 0);
  EXPECT_TRUE(has_options(list, {"UPCAST r1", "UNROLL r3"})) << list;
}

// A loop over the taps of lanes that reach beyond the border would ask for a mask at each, also
// where vectors side by side have some of what they read in common.
TEST_F(ChoiceTest, TapsThatDecideWhichLanesAreReadAreSideBySide) {
  const auto list = [&](const Ints& shape, const Ints& weights, const Window& window) {
    const Tensor x = make_placeholder(context_, kFloat32, to_shape(shape));
    return options(x, stored(conv(x, constant(weights), Tensor(), window)), 0);
  };
  const Window strided{.strides = {2, 2}, .before = {1, 1}, .after = {1, 1}};
  const std::string of_tiles = list({1, 24, 26, 60}, {24, 24, 3, 3}, strided);
  EXPECT_TRUE(has_options(of_tiles, {"TILE r2 12", "TILE r1 32", "UNROLL r5"})) << of_tiles;
  const Window dilated{.dilations = {2, 2}, .before = {8, 8}, .after = {8, 8}};
  const std::string whole = list({1, 200, 18, 17}, {6, 200, 9, 9}, dilated);
  EXPECT_TRUE(has_options(whole, {"TILE r1 32", "UNROLL r5"})) << whole;
}

// Where so few taps are at the border that their turns are written apart, a loop knows as well.
TEST_F(ChoiceTest, TapsWhoseBordersAreWrittenApartAreALoop) {
  const Tensor x = make_placeholder(context_, kFloat32, {1, 6, 69, 86});
  const Window window{{3, 3}, {2, 2}, {0, 1}, {0, 0}};
  const std::string list = options(x, conv(x, constant({80, 6, 7, 7}), Tensor(), window), 0);
  EXPECT_EQ(list.find("UNROLL"), std::string::npos) << list;
}

// Rows are chosen for the tile that they get: two vectors where lanes are stored apart, which five
// rows leave waiting for their sums.
TEST_F(ChoiceTest, RowsFillATileWhoseLanesAreStoredApart) {
  const Tensor x = make_placeholder(context_, kFloat32, {2, 192, 5, 33});
  const Window options{{1, 1}, {}, {0, 3}, {0, 3}};
  EXPECT_EQ(loops(x, conv(x, constant({100, 192, 1, 7}), Tensor(), options), 0),
            "r_4_2_5_4_192_7_9_2_16");
}

// An image that the second level of cache does not hold beside all else is read once, for all
// channels.
TEST_F(ChoiceTest, ColumnsFromBeyondTheSecondLevelAreReadOnce) {
  const auto list = [&](int64_t size) {
    const Tensor x = make_placeholder(context_, kFloat32, {1, 146, size});
    const Window window{.before = {1}, .after = {1}};
    return options(x, conv(x, constant({119, 146, 3}), Tensor(), window), 0);
  };
  const int64_t held = context_->backend().machine().l2_bytes / (146 * 4);
  EXPECT_NE(list(2 * held).find("ORDER r1 r0"), std::string::npos) << list(2 * held);
  EXPECT_EQ(list(held / 4).find("ORDER r1 r0"), std::string::npos) << list(held / 4);
  // It is not alone there.
  const int64_t nearly = context_->backend().machine().l2_bytes / (319 * 4) - 66;
  const Tensor x = make_placeholder(context_, kFloat32, {1, 319, nearly});
  const std::string once = options(x, conv(x, constant({39, 319, 1}), Tensor(), {}), 0);
  EXPECT_NE(once.find("ORDER r1 r0"), std::string::npos) << once;
}

// Rows half a page off share sets with every second one only: more of them are walked at once.
TEST_F(ChoiceTest, RowsHalfAPageOffCollideHalfAsMuch) {
  const auto list = [&](int64_t channels) {
    const Tensor x = make_placeholder(context_, kFloat32, {1, 112, 112, channels});
    return options(x, stored(depthwise(permute(x, {0, 3, 1, 2}), 2)), 0);
  };
  EXPECT_TRUE(list(96).starts_with("TILE r0 5; UPCAST r5;")) << list(96);
  EXPECT_TRUE(list(64).starts_with("TILE r0 3; UPCAST r5;")) << list(64);
}

// Two rows of fourteen outputs of a window for all channels, then each panel with both; four where
// they stay in the first level of cache.  Short rows are beside each other in registers, unless the
// last would be alone.
TEST_F(ChoiceTest, ADepthwiseConvolutionIsComputedInTilesOfTheProductThatReadsIt) {
  const Tensor x = make_placeholder(context_, kFloat32, {1, 56, 56, 128});
  const Tensor y = stored(pointwise(relu(depthwise(permute(x, {0, 3, 1, 2}))), 128));
  EXPECT_EQ(loops(x, y, 0), "r_28_4_4_2_128_14_2_16_3_3");
  // Seven columns of both rows share what they load.
  EXPECT_NE(options(x, y, 0).find("TILE r12 7; ORDER r12 r11 r10 r4 r5 r14 r13; VEC r13; "
                                  "UPCAST r14; UNROLL r4; UNROLL r5; UPCAST r10"),
            std::string::npos);
  const auto narrow = [&](int64_t size, int64_t channels, int64_t columns) {
    const Tensor in = make_placeholder(context_, kFloat32, {1, size, size, channels});
    const Tensor out = pointwise(relu(depthwise(permute(in, {0, 3, 1, 2}))), columns);
    return loops(in, stored(out), 0);
  };
  EXPECT_EQ(narrow(112, 32, 16), "r_28_4_4_32_28_16_3_3");
  EXPECT_EQ(narrow(6, 960, 160), "r_3_5_960_2_6_2_16_3_3");
  EXPECT_EQ(narrow(7, 960, 160), "r_7_5_960_7_2_16_3_3");
}

}  // namespace
}  // namespace tiny
