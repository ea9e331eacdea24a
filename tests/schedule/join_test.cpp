// What is told of joins, and single ones decided the other way.
#include "schedule/join.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "schedule/schedule.h"
#include "tensor/activation.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"
#include "tensor/window.h"
#include "tests/support/failure.h"
#include "tests/support/graph_test.h"

namespace tiny {
namespace {

TEST(Join, NumbersOfJoinsAreRead) {
  EXPECT_EQ(parse_joins(""), std::vector<int64_t>{});
  EXPECT_EQ(parse_joins("3,17"), (std::vector<int64_t>{3, 17}));
  for (const char* bad : {"x", "3,,4", "3 4", "-1", ",", "99999999999999999999"})
    testing::expect_failure(testing::failure_of([&] { parse_joins(bad); }), Status::InvalidArgument,
                            {"flip_joins"});
}

class JoinTest : public testing::GraphTest {
 protected:
  // Rounded to steps of a byte, and floats again.
  Tensor quantised(const Tensor& x) {
    const Tensor steps = round(div(x, Tensor::weak_float(context_, 0.3)));
    const Tensor kept = minimum(maximum(steps, Tensor::weak_float(context_, -128)),
                                Tensor::weak_float(context_, 127));
    return mul(cast(cast(kept, kInt8), kFloat32), Tensor::weak_float(context_, 0.3));
  }
};

// The exponentials of a softmax and their sum have no buffers, unless one is kept from joining.
TEST_F(JoinTest, AFlippedJoinIsDecidedTheOtherWay) {
  const Tensor t = softmax(given({64, 128}), 1);
  const UOp wanted = t.graph().make(Op::Contiguous, {t.node()});
  const auto count = [&](const JoinSettings& settings) {
    return make_schedule({&wanted, 1}, avx512_machine(), true, settings).kernels.size();
  };
  std::vector<JoinTrial> trials;
  EXPECT_EQ(count({{}, &trials, nullptr}), 1U);
  ASSERT_FALSE(trials.empty());
  for (const JoinTrial& trial : trials) {
    EXPECT_TRUE(trial.joined);
    EXPECT_LE(trial.cost.paid(), trial.cost.saved());
    std::vector<JoinTrial> flipped;
    EXPECT_GT(count({{trial.number}, &flipped, nullptr}), 1U);
    const auto same = std::ranges::find(flipped, trial.number, &JoinTrial::number);
    ASSERT_NE(same, flipped.end());
    EXPECT_FALSE(same->joined);
    EXPECT_EQ(same->cost[JoinPart::Traffic], trial.cost[JoinPart::Traffic]);
  }
}

// Lanes are as many as the widest value leaves: what makes a mask of 64 bits into floats does not
// join the products of floats that it is added to.
TEST_F(JoinTest, WideValuesStayOutOfProducts) {
  const Ints heads{4, 128, 64};
  const Tensor scores = matmul(given(heads), transpose(given(heads), 1, 2));
  const std::vector<int64_t> ones(128, 1);
  const Tensor kept =
      cast(from_data(context_, kInt64, {128}, ones.data(), std::ssize(ones) * 8), kFloat32);
  const Tensor masked = add(scores, mul(sub(kept, given({1})), given({1})));
  const Tensor out = matmul(softmax(masked, 2), given(heads));
  const UOp wanted = out.graph().make(Op::Contiguous, {out.node()});
  const Schedule schedule = make_schedule({&wanted, 1}, avx512_machine(), true, {});
  for (const ScheduledKernel& scheduled : schedule.kernels) {
    const Kernel& kernel = scheduled.kernel;
    const bool reads_wide = std::ranges::any_of(
        kernel.params, [](const KernelParam& p) { return p.read && p.element == kInt64; });
    const bool reduces =
        std::ranges::any_of(kernel.ranges, [](const KernelRange& r) { return r.reduced; });
    EXPECT_FALSE(reads_wide && reduces) << to_string(kernel);
  }
}

// One row's product has its lanes along the steps, which a pooling window's channels, rows and
// columns cut short: it stays a kernel of its own, though no value would be computed twice.
TEST_F(JoinTest, APooledRowStaysOutOfItsProduct) {
  Window halved;
  halved.strides = {2, 2};
  const Tensor pooled = max_pool(given({1, 16, 8, 8}), halved.with_kernel({2, 2}));
  const Tensor y = matmul(reshape(pooled, {1, 256}), transpose(given({120, 256}), 0, 1));
  const UOp wanted = y.graph().make(Op::Contiguous, {y.node()});
  std::vector<JoinTrial> trials;
  const Schedule schedule =
      make_schedule({&wanted, 1}, avx512_machine(), true, {{}, &trials, nullptr});
  EXPECT_EQ(schedule.kernels.size(), 2U);
  const auto makes = [](const JoinTrial& trial) { return trial.cost.makes_operand; };
  const auto trial = std::ranges::find_if(trials, makes);
  ASSERT_NE(trial, trials.end());
  EXPECT_FALSE(trial->joined);
  EXPECT_GT(trial->cost[JoinPart::Operand], trial->cost.saved());
}

// Each part has a name and a side, and counts for as much more as there is more of it.
TEST(JoinCost, PartsAreSavedOrPaid) {
  for (size_t i = 0; i < kJoinParts; ++i) {
    const auto part = static_cast<JoinPart>(i);
    JoinCost once, twice;
    once[part] = 1;
    twice[part] = 2;
    EXPECT_GT(once.saved() + once.paid(), 0) << name_of(part);
    EXPECT_EQ(once.saved() * once.paid(), 0) << name_of(part);
    EXPECT_DOUBLE_EQ(twice.saved() + twice.paid(), 2 * (once.saved() + once.paid()));
    for (size_t other = 0; other < i; ++other)
      EXPECT_NE(name_of(part), name_of(static_cast<JoinPart>(other)));
  }
}

// A filter's window saves more by staying in its product's rows than filling them costs; a pooling
// window does not, on one core or on many.
TEST_F(JoinTest, WindowsWithAFilterStayInRowsAndOthersDoNot) {
  Window same;
  same.before = same.after = {1, 1};
  // Channels lie side by side, as they will in what is computed before.
  const Tensor x = permute(given({1, 28, 28, 64}), {0, 3, 1, 2});
  const auto parts = [&](const Tensor& window, int32_t cores) {
    const Tensor y = conv(window, given({32, 64, 1, 1}), Tensor(), Window());
    const UOp wanted = y.graph().make(Op::Contiguous, {y.node()});
    Machine target = avx512_machine();
    target.cores = cores;
    std::vector<JoinTrial> trials;
    make_schedule({&wanted, 1}, target, true, {{}, &trials, nullptr});
    const auto of_window = std::ranges::find_if(trials, [](const JoinTrial& trial) {
      return trial.cost[JoinPart::Convolved] + trial.cost[JoinPart::Pooled] > 0;
    });
    EXPECT_NE(of_window, trials.end());
    return *of_window;
  };
  for (const int32_t cores : {1, 2, 16}) {
    const JoinTrial filtered =
        parts(conv(x, given({64, 1, 3, 3}), Tensor(), same.with_groups(64)), cores);
    EXPECT_TRUE(filtered.joined);
    EXPECT_EQ(filtered.cost[JoinPart::Pooled], 0);
    const JoinTrial pooled = parts(max_pool(x, same.with_kernel({3, 3})), cores);
    EXPECT_EQ(pooled.cost[JoinPart::Convolved], 0);
    EXPECT_EQ(pooled.cost[JoinPart::Pooled], filtered.cost[JoinPart::Convolved]);
    EXPECT_FALSE(pooled.joined);
    // Where memory has them apart, as at a graph's border, each would be loaded for itself.
    const JoinTrial apart = parts(
        conv(given({1, 64, 28, 28}), given({64, 1, 3, 3}), Tensor(), same.with_groups(64)), cores);
    EXPECT_FALSE(apart.joined);
  }
}

// A softmax's rows join the product with them whatever becomes of its columns: heads that are put
// side by side share one axis with them.
TEST_F(JoinTest, HeadsThatArePutSideBySideKeepTheirRows) {
  const Ints heads{12, 128, 64};
  const Tensor scores = matmul(given(heads), transpose(given(heads), 1, 2));
  const Tensor product = matmul(softmax(scores, 2), given(heads));
  const Tensor rows = reshape(permute(product, {1, 0, 2}), to_shape({128, 768}));
  for (const Tensor& out : {rows, add(rows, given({128, 768}))}) {
    const UOp wanted = out.graph().make(Op::Contiguous, {out.node()});
    EXPECT_EQ(make_schedule({&wanted, 1}, avx512_machine(), true, {}).kernels.size(), 1U);
  }
}

// Rows that one tile of columns is multiplied with are made element by element, beside lanes of
// columns: they are made beforehand.  For several tiles they are filled into scratch, in lanes.
TEST_F(JoinTest, RowsOfAProductWithFewColumnsAreMadeBeforehand) {
  const auto is_joined = [&](int64_t columns) {
    const Tensor x = matmul(given({2048, 32}), given({32, 96}));
    const Tensor rows = mul(x, hard_sigmoid(add(x, given({2048, 1})), 1.0 / 6, 0.5));
    const Tensor y = matmul(rows, given({96, columns}));
    const UOp wanted[] = {x.graph().make(Op::Contiguous, {x.node()}),
                          y.graph().make(Op::Contiguous, {y.node()})};
    std::vector<JoinTrial> trials;
    make_schedule(wanted, avx512_machine(), true, {{}, &trials, nullptr});
    const auto of_rows = std::ranges::find_if(
        trials, [](const JoinTrial& t) { return shape_of(t.value) == Shape{2048, 96}; });
    EXPECT_NE(of_rows, trials.end());
    return of_rows != trials.end() && of_rows->joined;
  };
  EXPECT_TRUE(is_joined(128));
  EXPECT_FALSE(is_joined(40));
}

// Rows of a picture's windows lie in pieces of eight: what they are made of is computed beforehand,
// once for all columns.
TEST_F(JoinTest, RowsOfWindowsAreMadeBeforehand) {
  const auto kernels = [&](bool in_windows) {
    Tensor rows = mul(add(given({256, 96}), given({256, 1})), given({256, 1}));
    if (in_windows) {
      const Tensor windows = reshape(rows, to_shape({2, 8, 2, 8, 96}));
      rows = reshape(permute(windows, {0, 2, 1, 3, 4}), to_shape({4, 64, 96}));
    }
    const Tensor y = matmul(rows, given({96, 288}));
    const UOp wanted = y.graph().make(Op::Contiguous, {y.node()});
    return make_schedule({&wanted, 1}, avx512_machine(), true, {}).kernels.size();
  };
  EXPECT_EQ(kernels(false), 1U);
  EXPECT_EQ(kernels(true), 2U);
}

// So do rows whose steps lie apart, as a gradient has them for weights: scratch would be filled
// with them by turned squares.
TEST_F(JoinTest, RowsWhoseStepsLieApartAreMadeBeforehand) {
  const auto kernels = [&](bool lie_apart) {
    const Ints shape = lie_apart ? Ints{128, 512} : Ints{512, 128};
    const Tensor none = Tensor::weak_float(context_, 0);
    Tensor rows = where(greater(given(shape), none), given(shape), none);
    if (lie_apart) rows = transpose(rows, 0, 1);
    const Tensor y = matmul(rows, given({128, 784}));
    const UOp wanted = y.graph().make(Op::Contiguous, {y.node()});
    return make_schedule({&wanted, 1}, avx512_machine(), true, {}).kernels.size();
  };
  EXPECT_EQ(kernels(false), 1U);
  EXPECT_EQ(kernels(true), 2U);
}

// The same of queries that are quantised, beside the keys' lanes; keys are made in lanes.
TEST_F(JoinTest, QuantisedQueriesAreMadeBeforehand) {
  const Ints queries{8, 12, 16}, keys{8, 20, 16};
  const Tensor query = quantised(given(queries)), key = quantised(given(keys));
  const Tensor scores = matmul(query, transpose(key, 1, 2));
  const Tensor out = matmul(softmax(scores, 2), given(keys));
  const UOp wanted = out.graph().make(Op::Contiguous, {out.node()});
  std::vector<JoinTrial> trials;
  make_schedule({&wanted, 1}, avx512_machine(), true, {{}, &trials, nullptr});
  const auto joins = [&](const Shape& shape) {
    const auto trial = std::ranges::find_if(
        trials, [&](const JoinTrial& t) { return shape_of(t.value) == shape; });
    EXPECT_NE(trial, trials.end());
    return trial != trials.end() && trial->joined;
  };
  EXPECT_FALSE(joins({8, 12, 16}));
  EXPECT_TRUE(joins({8, 20, 16}));
}

// Weights that are divided by their own length are made once, not for each tile of a picture.
TEST_F(JoinTest, QuantisedWeightsOfLengthOneAreMadeBeforehand) {
  const Tensor w = given({2, 24, 32, 3, 3});
  const Tensor length = sqrt(sum(mul(w, w), {2, 3, 4}, true));
  const Tensor unit = reshape(quantised(div(w, length)), to_shape({48, 32, 3, 3}));
  Window same;
  same.before = same.after = {1, 1};
  const Tensor y = conv(given({1, 64, 24, 24}), unit, Tensor(), same.with_groups(2));
  const UOp wanted = y.graph().make(Op::Contiguous, {y.node()});
  std::vector<JoinTrial> trials;
  make_schedule({&wanted, 1}, avx512_machine(), true, {{}, &trials, nullptr});
  const auto trial = std::ranges::find_if(
      trials, [](const JoinTrial& t) { return product(shape_of(t.value)).is(48 * 32 * 9); });
  ASSERT_NE(trial, trials.end());
  EXPECT_TRUE(trial->cost.in_tiles);
  EXPECT_FALSE(trial->joined);
}

// Scores of relative positions, of which each query looks up its own, are a product in tiles: made
// where they are looked up they would be made one by one.
TEST_F(JoinTest, AProductOfWhichElementsAreLookedUpIsApart) {
  const Tensor positions = matmul(given({8, 64, 16}), transpose(given({8, 128, 16}), 1, 2));
  const Tensor index = take_along_axis(positions, cast(given({8, 64, 64}), kInt64), 2);
  const Tensor scores = matmul(given({8, 64, 16}), transpose(given({8, 64, 16}), 1, 2));
  const Tensor out = matmul(softmax(add(scores, index), 2), given({8, 64, 16}));
  const UOp wanted = out.graph().make(Op::Contiguous, {out.node()});
  std::vector<JoinTrial> trials;
  make_schedule({&wanted, 1}, avx512_machine(), true, {{}, &trials, nullptr});
  const auto trial = std::ranges::find_if(trials, [](const JoinTrial& t) {
    return t.value.op() == Op::ReduceAxis && product(shape_of(t.value)).is(8 * 64 * 128);
  });
  EXPECT_TRUE(trial == trials.end() || !trial->joined);
}

// Halves are widened once, in lanes, instead of one by one for each tap of a convolution.
TEST_F(JoinTest, HalvesAreWidenedBeforeTheirConvolution) {
  const Shape shape{1, 32, 48, 48};
  const Tensor x = mul(given({1, 32, 48, 48}), given({1, 32, 1, 1}));
  Window same;
  same.before = same.after = {1, 1};
  const Tensor y = conv(cast(cast(x, kFloat16), kFloat32), given({32, 32, 3, 3}), Tensor(), same);
  const UOp wanted = y.graph().make(Op::Contiguous, {y.node()});
  std::vector<JoinTrial> trials;
  make_schedule({&wanted, 1}, avx512_machine(), true, {{}, &trials, nullptr});
  const auto trial = std::ranges::find_if(trials, [&](const JoinTrial& t) {
    return shape_of(t.value) == shape && t.value.dtype() == kFloat32;
  });
  ASSERT_NE(trial, trials.end());
  EXPECT_FALSE(trial->joined);
}

}  // namespace
}  // namespace tiny
