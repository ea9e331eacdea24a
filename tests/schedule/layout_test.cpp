// Which axis stored values have innermost.
#include "schedule/layout.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/compile.h"
#include "engine/realize.h"
#include "schedule/schedule.h"
#include "tensor/activation.h"
#include "tensor/elementwise.h"
#include "tensor/joining.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/normalization.h"
#include "tensor/reduce.h"
#include "tensor/resize.h"
#include "tensor/window.h"
#include "tests/reference/reference.h"
#include "tests/support/graph_test.h"

namespace tiny {
namespace {

class LayoutTest : public testing::GraphTest {
 protected:
  Tensor conv3(const Tensor& x, int64_t channels, int64_t groups = 1) {
    Window same;
    same.before = same.after = {1, 1};
    const int64_t in = x.shape()[1].value();
    return relu(conv(x, given({channels, in / groups, 3, 3}), Tensor(), same.with_groups(groups)));
  }
  // For each kernel, in order, the strides that its result has in memory.
  std::vector<Ints> strides(const Tensor& t) {
    const UOp wanted = t.graph().make(Op::Contiguous, {t.node()});
    std::vector<Ints> out;
    for (const ScheduledKernel& k : make_schedule({&wanted, 1}, avx512_machine()).kernels)
      out.push_back(const_dims(k.stores.front().view.strides));
    return out;
  }
  // Computed with and without layouts, the values are the oracle's.
  void check(Tensor t) {
    const reference::Values want = reference::evaluate(t.node());
    testing::Floats got(want.size());
    read(t, got.data(), std::ssize(got) * 4);
    EXPECT_EQ(reference::difference(want, got.data()), "");
  }
};

TEST_F(LayoutTest, AChainOfConvolutionsHasChannelsLast) {
  const Tensor y = conv3(conv3(conv3(given({1, 8, 6, 7}), 16), 24), 16);
  EXPECT_EQ(strides(y),
            (std::vector<Ints>{{672, 1, 112, 16}, {1008, 1, 168, 24}, {672, 42, 7, 1}}));
  check(y);
}

// Columns that lie as far apart as a run says would be stored one by one, whoever asked for the
// result; by numbers it stays as it was asked for.
TEST_F(LayoutTest, ColumnsOfAResultOfARunsSizeLieSideBySide) {
  const auto stride = [&](const Dim& rows) {
    const Shape shape{Dim(1), Dim(32), rows, rows};
    const Tensor x =
        reshape(Tensor(context_, make_input(*context_, kFloat32, product(shape))), shape);
    const Tensor sums = contiguous(conv(relu(x), given({48, 32, 1, 1}), Tensor(), {}));
    const UOp wanted = neg(sums).graph().make(Op::Contiguous, {neg(sums).node()});
    return make_schedule({&wanted, 1}, avx512_machine())
        .kernels.front()
        .stores.front()
        .view.strides[1];
  };
  EXPECT_EQ(stride(Dim(20)), Dim(400));
  EXPECT_EQ(stride(Dim(context_->graph().variable("n", 2, 256))), Dim(1));
}

// Words are of channels, of which one is enough, however long the window is. Floats slide along
// rows then.
TEST_F(LayoutTest, BytesOfFewChannelsHaveThemLast) {
  const auto first = [&](int64_t channels, int64_t window, bool in_words) {
    Tensor weights = given({32, channels, window, window});
    if (in_words) weights = cast(weights, kInt8);
    Tensor* const stored[] = {&weights};
    realize(stored);
    Tensor data = relu(conv(given({1, 16, 14, 15}), given({channels, 16, 1, 1}), Tensor(), {}));
    if (in_words) data = cast(cast(data, kUInt8), kInt32), weights = cast(weights, kInt32);
    return strides(conv(data, weights, Tensor(), {})).front();
  };
  const Ints rows{210, 15, 1};
  const auto beside = [](int64_t channels) { return Ints{1, 15 * channels, channels}; };
  const auto inner = [](const Ints& all) { return Ints(all.begin() + 1, all.end()); };
  EXPECT_EQ(inner(first(4, 3, true)), beside(4));
  EXPECT_EQ(inner(first(6, 3, true)), beside(6));
  EXPECT_EQ(inner(first(6, 13, true)), beside(6));
  EXPECT_EQ(inner(first(3, 3, true)), rows);
  EXPECT_EQ(inner(first(6, 3, false)), rows);
  EXPECT_EQ(inner(first(8, 3, false)), beside(8));
  EXPECT_EQ(inner(first(8, 13, false)), rows);
}

TEST_F(LayoutTest, WhatIsPooledOrAddedInBetweenFollows) {
  const Tensor a = conv3(given({1, 8, 6, 8}), 16);
  Window half;
  half.strides = {2, 2};
  const Tensor b = max_pool(a, half.with_kernel({2, 2}));
  const Tensor y = conv3(relu(add(conv3(b, 16), b)), 16);
  for (const Ints& s : strides(y)) EXPECT_TRUE(s[1] == 1 || s == strides(y).back());
  check(y);
}

// The pooled value is read along the channels and, to be summed over neighbours, along none.
TEST_F(LayoutTest, WhatIsNormalisedAcrossChannelsHasThemLast) {
  Window half;
  half.strides = {2, 2};
  const Tensor pooled = max_pool(conv3(given({1, 8, 8, 8}), 16), half.with_kernel({2, 2}));
  const Tensor y = conv3(lrn(pooled, 5), 16);
  const std::vector<Ints> all = strides(y);
  ASSERT_GE(all.size(), 4U);
  for (size_t i = 0; i + 1 < all.size(); ++i) EXPECT_EQ(all[i][1], 1) << i;
  check(y);
}

// The sum of seven rows of seven asks for no order: the pooled value keeps its channels last.
TEST_F(LayoutTest, AShortReductionLeavesChannelsLast) {
  Window half;
  half.strides = {2, 2};
  const Tensor y =
      sum(max_pool(conv3(given({1, 8, 14, 14}), 16), half.with_kernel({2, 2})), {2, 3}, false);
  const std::vector<Ints> all = strides(y);
  ASSERT_EQ(all.size(), 3U);
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(all[i][1], 1) << i;
  check(y);
}

// Sums over a batch's images and pixels, as many as a step of training has, go side by side for all
// channels.
TEST_F(LayoutTest, StatisticsOfABatchLeaveChannelsLast) {
  const Tensor h = conv3(given({4, 8, 12, 12}), 16);
  Tensor y = h;
  for (int i = 0; i < 4; ++i) {
    const Tensor centred = sub(y, mean(y, {0, 2, 3}, true));
    y = mul(centred, mean(mul(centred, h), {0, 2, 3}, true));
  }
  y = conv3(y, 16);
  EXPECT_EQ(strides(y)[0][1], 1);
  check(y);
}

TEST_F(LayoutTest, ChannelsOfADepthwiseConvolutionStayLast) {
  const Tensor y = conv3(conv3(conv3(given({1, 8, 6, 7}), 16), 16, 16), 16);
  EXPECT_EQ(strides(y)[1], (Ints{672, 1, 112, 16}));
  check(y);
}

// A depthwise convolution at a graph's border slides along the rows that it was given, whatever the
// product that reads it would like; strided windows of what is computed have lanes of channels.
TEST_F(LayoutTest, WindowsOfGivenRowsStayRowsAndStridedOnesDoNot) {
  const auto depthwise = [&](const Tensor& x, int64_t kernel, int64_t stride) {
    Window w;
    w.before = w.after = {kernel / 2, kernel / 2};
    w.strides = {stride, stride};
    const int64_t channels = x.shape()[1].value();
    return conv(x, given({channels, 1, kernel, kernel}), Tensor(), w.with_groups(channels));
  };
  const auto pointwise = [&](const Tensor& x) {
    return conv(x, given({24, x.shape()[1].value(), 1, 1}), Tensor(), Window());
  };
  const Tensor given_rows = pointwise(depthwise(given({1, 16, 20, 18}), 3, 1));
  EXPECT_EQ(strides(given_rows).front(), (Ints{5760, 360, 360, 18, 1, 1, 1, 1}));
  check(given_rows);
  const Tensor given_apart = pointwise(depthwise(given({1, 16, 20, 18}), 3, 2));
  EXPECT_EQ(strides(given_apart).front(), (Ints{1440, 90, 90, 9, 1, 1, 1, 1}));
  check(given_apart);
  const Tensor computed = depthwise(pointwise(given({1, 16, 20, 18})), 7, 2);
  EXPECT_EQ(strides(computed).front(), (Ints{8640, 8640, 1, 432, 24, 24, 24, 24}));
  check(computed);
}

TEST_F(LayoutTest, TheSlicesOfAConcatenationShareItsLayout) {
  const Tensor x = conv3(given({1, 8, 6, 7}), 16);
  const Tensor parts[] = {conv3(x, 16), conv3(x, 8)};
  const Tensor y = conv3(concat(parts, 1), 16);
  const std::vector<Ints> all = strides(y);
  EXPECT_EQ(std::count(all.begin(), all.end(), (Ints{1008, 1, 168, 24})), 2);
  check(y);
}

// What a resize reads by the rows and columns that it knows lies as its result does.
TEST_F(LayoutTest, WhatIsResizedKeepsChannelsLast) {
  const Tensor x = conv3(given({2, 8, 6, 8}), 16);
  ResizeOptions options;
  options.mode = Interpolation::Linear;
  const Tensor y = conv3(resize(x, {2, 3}, {12, 16}, options), 16);
  const std::vector<Ints> all = strides(y);
  ASSERT_GE(all.size(), 3U);
  for (size_t i = 0; i + 1 < all.size(); ++i)
    EXPECT_TRUE(all[i].size() != 4 || all[i][1] == 1) << i;
  check(y);
}

// A filter's gradient sums over the images, of which there are more than rows or columns: the
// pixels keep the channels last in which they are written.
TEST_F(LayoutTest, AFilterGradientVotesForChannels) {
  const Tensor pixels = given({16, 1, 8, 8});
  const Tensor out = conv3(given({16, 4, 6, 6}), 8);
  const auto by_channel = [](const Tensor& t) { return permute(t, {1, 0, 2, 3}); };
  const Tensor gradient = conv(by_channel(pixels), by_channel(out), Tensor(), {});
  EXPECT_EQ(strides(gradient).front(), (Ints{288, 1, 48, 8}));
  check(gradient);
  // Chosen by a value that is read, as a derivative is, and with pixels that are computed.
  const Tensor other = given({16, 8, 6, 6});
  const Tensor masked = where(less(other, neg(other)), out, other);
  const Tensor both = conv(by_channel(conv3(pixels, 8)), by_channel(masked), Tensor(), {});
  const std::vector<Ints> all = strides(both);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0][1], 1);
  EXPECT_EQ(all[1][1], 1);
  check(both);
}

TEST_F(LayoutTest, MatricesStayAsTheyAre) {
  const Tensor x = neg(given({2, 12, 16}));
  const Tensor y = matmul(relu(matmul(x, given({16, 24}))), given({24, 16}));
  for (const Ints& s : strides(y)) EXPECT_EQ(s.back(), 1);
  check(y);
}

// The sets of a cache repeat every 4096 bytes.
TEST_F(LayoutTest, RowsAPageApartHaveAGap) {
  const auto product = [&](int64_t rows, int64_t columns) {
    const Tensor x = relu(matmul(neg(given({rows, 16})), given({16, columns})));
    return matmul(x, given({columns, 24}));
  };
  EXPECT_EQ(strides(product(12, 1024)).front(), (Ints{1040, 1}));
  EXPECT_EQ(strides(product(12, 1008)).front(), (Ints{1008, 1}));
  EXPECT_EQ(strides(product(4, 1024)).front(), (Ints{1024, 1}));  // few rows get along
  check(product(12, 1024));
}

TEST_F(LayoutTest, RowsWithGapsAreReshapedAndJoined) {
  const Tensor x = relu(matmul(neg(given({12, 16})), given({16, 1024})));
  check(matmul(reshape(x, to_shape({24, 512})), given({512, 8})));
  check(add(sum(reshape(x, to_shape({12, 4, 256})), {2}), matmul(x, given({1024, 4}))));
  const Tensor parts[] = {x, neg(x)};
  check(matmul(concat(parts, 0), given({1024, 8})));
  check(matmul(concat(parts, 1), given({2048, 8})));
}

TEST_F(LayoutTest, WhatACallerSeesIsRowMajor) {
  Tensor a = conv3(given({1, 8, 6, 7}), 16);
  Tensor b = conv3(a, 16);
  Tensor* both[] = {&a, &b};
  realize(both);
  check(a);
  check(b);
  check(sum(mul(a, b), {1}));
}

TEST_F(LayoutTest, AFlattenedValueIsReadInItsOwnOrder) {
  const Tensor x = conv3(conv3(given({1, 8, 5, 6}), 16), 16);
  check(matmul(reshape(x, to_shape({1, 480})), given({480, 20})));
}

}  // namespace
}  // namespace tiny
