// How many kernels well-known pieces of networks become.
#include <gtest/gtest.h>

#include "engine/compile.h"
#include "schedule/schedule.h"
#include "tensor/activation.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/joining.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/normalization.h"
#include "tensor/reduce.h"
#include "tensor/window.h"
#include "tests/support/context.h"
#include "tests/support/tensors.h"

namespace tiny {
namespace {

class KernelCounts : public ::testing::Test {
 protected:
  KernelCounts() {
    Flags flags = testing::flags_for("interp", "avx512");
    flags.spec = 1;
    context_ = make_ref<Context>(flags);
  }

  Tensor input(const Ints& shape) { return testing::float_input(context_, shape); }

  size_t kernels(const Tensor& t, int32_t cores = 1) {
    const UOp wanted = t.graph().make(Op::Contiguous, {t.node()});
    Machine target = avx512_machine();
    target.cores = cores;
    return make_schedule({&wanted, 1}, target).kernels.size();
  }

  Ref<Context> context_;
};

TEST_F(KernelCounts, ConvolutionWithAllThatFollowsIsOne) {
  Window same;
  same.before = same.after = {1, 1};
  Tensor y = conv(input({1, 64, 56, 56}), input({64, 64, 3, 3}), input({64}), same);
  y = batch_norm(y, input({64}), input({64}), input({64}), input({64}), 1e-5);
  EXPECT_EQ(kernels(relu(y)), 1U);
  EXPECT_EQ(kernels(relu(add(y, input({1, 64, 56, 56})))), 1U);
}

TEST_F(KernelCounts, MatmulWithBiasAndGeluIsOne) {
  const Tensor y = add(matmul(input({128, 768}), input({768, 3072})), input({3072}));
  EXPECT_EQ(kernels(gelu(y)), 1U);
}

// What a product reads by an index is stored first, unless the product is as short as that; all
// else reads it where it lies.
TEST_F(KernelCounts, GatheredRowsAreStoredBeforeTheirProduct) {
  const auto rows = [&](int64_t count) {
    return gather(input({1000, 256}), cast(input({count}), kInt64), 0);
  };
  const Tensor w = input({256, 256});
  EXPECT_EQ(kernels(matmul(rows(256), w)), 2U);
  EXPECT_EQ(kernels(matmul(rows(1), w)), 1U);
  EXPECT_EQ(kernels(add(matmul(input({256, 256}), w), rows(256))), 1U);
  EXPECT_EQ(
      kernels(layer_norm(add(rows(64), input({64, 256})), input({256}), input({256}), 1, 1e-5)),
      1U);
}

// What is the same number everywhere, a zero point's share of a product say, is read from nowhere,
// however often it is wanted.  Kernels are not joined here: a join would not store it either.
TEST_F(KernelCounts, OneNumberIsNotStored) {
  const auto stored = [&](const Tensor& repeated) {
    const UOp wanted = (expand(repeated, {64, 512, 512}) * input({64, 512, 512})).node();
    const UOp out = repeated.graph().make(Op::Contiguous, {wanted});
    return make_schedule({&out, 1}, avx512_machine(), false).kernels.size() - 1;
  };
  Tensor number = full(context_, kFloat32, {1, 512, 512}, 0.5);
  for (int i = 0; i < 3; ++i) number = sin(number) + number;
  EXPECT_EQ(stored(number), 0U);
  EXPECT_EQ(stored(sin(input({1, 512, 512}))), 1U) << "of more than one number";
}

// What others read as well has a buffer of its own, and goes into a concatenation from there.
// Kernels are not joined here: a join may store what it computes twice.
TEST_F(KernelCounts, PartsOfConcatenationsAreComputedOnce) {
  const auto sums = [](const Tensor& t) {
    const UOp wanted = t.node();
    size_t count = 0;
    for (const ScheduledKernel& k : make_schedule({&wanted, 1}, avx512_machine(), false).kernels)
      for (const UOp& u : topological(k.kernel.roots)) count += u.op() == Op::Reduce ? 1 : 0;
    return count;
  };
  const Tensor x = input({1, 64, 28, 28});
  Window same;
  same.before = same.after = {1, 1};
  const auto grown = [&](const Tensor& t, int64_t channels) {
    return conv(relu(t), input({32, channels, 3, 3}), input({32}), same);
  };
  const Tensor a = grown(x, 64);
  const Tensor pair[] = {x, a};
  const Tensor once = concat(pair, 1);
  EXPECT_EQ(sums(conv(relu(once), input({8, 96, 1, 1}), Tensor(), {})), 2U);
  const Tensor more[] = {once, grown(once, 96)};
  EXPECT_EQ(sums(concat(more, 1)), 2U);
  const Tensor both[] = {a, grown(a, 32)};
  EXPECT_EQ(sums(concat(both, 1)), 2U);
}

// What turns queries and keys by their positions is computed once, not for each tile of scores, and
// the rest of attention stays one kernel.
TEST_F(KernelCounts, QueriesAndKeysAreTurnedOnce) {
  const Tensor w = input({256, 256});
  const auto heads = [&] {
    return permute(reshape(matmul(input({113, 256}), w), to_shape({113, 8, 32})), {1, 0, 2});
  };
  const auto turned = [&](const Tensor& x) {
    return add(mul(x, input({113, 32})), mul(flip(x, {2}), input({113, 32})));
  };
  const Tensor q = turned(heads());
  const Tensor k = turned(heads());
  const Tensor scores = mul(matmul(q, permute(k, {0, 2, 1})), number(q, 0.2));
  EXPECT_EQ(kernels(matmul(softmax(scores, 2), heads())), 3U + 2U + 1U);
}

// A bias that is looked up for each pair of positions has its neighbours anywhere in the table:
// tiles of scores read it from memory, however many products want it.
TEST_F(KernelCounts, WhatIsLookedUpByLanesIsStoredBeforeItMeetsAProduct) {
  const Tensor table = input({65, 12});
  const Tensor places = cast(input({128, 128}), kInt64);
  const Tensor bias = add(permute(gather(table, places, 0), {2, 0, 1}), input({128}));
  const auto scores = [&] { return matmul(input({12, 128, 32}), input({12, 32, 128})); };
  EXPECT_EQ(kernels(add(scores(), bias)), 2U);
  EXPECT_EQ(kernels(softmax(add(scores(), bias), 2)), 2U);
  EXPECT_EQ(kernels(add(add(scores(), bias), matmul(input({12, 128, 32}), input({12, 32, 128})))),
            3U);
}

// What excites channels is a kernel of its own: the product that follows wants tiles of registers.
TEST_F(KernelCounts, WhatExcitesChannelsIsNotPartOfTheProduct) {
  const Tensor x = input({1, 240, 19, 13});
  Tensor gate = relu(conv(mean(x, {2, 3}, true), input({16, 240, 1, 1}), Tensor(), {}));
  gate = sigmoid(conv(gate, input({240, 16, 1, 1}), Tensor(), {}));
  EXPECT_EQ(kernels(conv(mul(x, gate), input({240, 240, 1, 1}), Tensor(), {})), 3U);
}

// Words are read, not computed: what becomes bytes is stored before its product.
TEST_F(KernelCounts, QuantisedValuesAreStoredBeforeTheirProduct) {
  const auto bytes = [&](const Tensor& t) {
    return cast(minimum(maximum(round(t), number(t, 0)), number(t, 255)), kUInt8);
  };
  const auto stored = [&](const Tensor& t, DotSet dots) {
    const UOp wanted = t.graph().make(Op::Contiguous, {t.node()});
    Machine target = avx512_machine();
    target.dots = dots;
    std::vector<DType> types;
    for (const ScheduledKernel& k : make_schedule({&wanted, 1}, target).kernels)
      types.push_back(k.kernel.roots.front().src(1).dtype());
    return types;
  };
  const Tensor w = cast(cast(input({768, 256}), kInt8), kInt32);
  const Tensor x = input({512, 768});
  const Tensor y = matmul(cast(bytes(x), kInt32), w);
  EXPECT_EQ(stored(y, kAllDots), (std::vector<DType>{kUInt8, kInt8, kInt32}));
  EXPECT_EQ(stored(y, 0), (std::vector<DType>{kInt32}));
  // What a sum becomes is stored as bytes as well, not as what these are widened to.
  const Tensor z =
      matmul(cast(bytes(cast(y, kFloat32)), kInt32), cast(cast(input({256, 64}), kInt8), kInt32));
  EXPECT_EQ(stored(z, kAllDots), (std::vector<DType>{kUInt8, kInt8, kUInt8, kInt8, kInt32}));
  // Few rows, for which a product would compute them without lanes.
  const Tensor few = matmul(cast(bytes(div(input({10, 124}), input({1}))), kInt32),
                            cast(cast(input({124, 64}), kInt8), kInt32));
  EXPECT_EQ(stored(few, kAllDots), (std::vector<DType>{kUInt8, kInt8, kInt32}));
}

TEST_F(KernelCounts, RowsAreOne) {
  EXPECT_EQ(kernels(softmax(input({512, 1024}), 1)), 1U);
  EXPECT_EQ(kernels(softmax(input({512, 1024}), 0)), 1U);
  EXPECT_EQ(kernels(softmax(input({4, 64, 100}), 1)), 1U);
  EXPECT_EQ(kernels(layer_norm(input({512, 768}), input({768}), input({768}), 1, 1e-5)), 1U);
  EXPECT_EQ(kernels(rms_norm(input({512, 768}), input({768}), 1)), 1U);
}

// The product with the values is a contraction, though each head's probabilities are read along the
// projection's columns of that head.
TEST_F(KernelCounts, AttentionAndItsProjectionAreTwo) {
  const Tensor keys = permute(input({1, 4, 16, 64}), {0, 1, 3, 2});
  const Tensor scores = softmax(matmul(input({1, 4, 16, 64}), keys), 3);
  const Tensor heads = permute(matmul(scores, input({1, 4, 16, 64})), {0, 2, 1, 3});
  EXPECT_EQ(kernels(matmul(reshape(heads, to_shape({16, 256})), input({256, 256}))), 2U);
}

TEST_F(KernelCounts, MovementBeforeAnAdditionIsNone) {
  Tensor x = pad(input({30, 40}), {Dim(1), Dim(2)}, {Dim(3), Dim(4)});
  x = slice(x, {2, 1}, {34, 46}, {2, 3});
  x = transpose(flip(x, {0}), 0, 1);
  EXPECT_EQ(kernels(add(x, input({15, 16}))), 1U);
}

TEST_F(KernelCounts, AttentionIsOne) {
  const Tensor q = input({12, 128, 64});
  const Tensor k = input({12, 64, 128});
  const Tensor scores = softmax(matmul(q, k), 2);
  EXPECT_EQ(kernels(matmul(scores, input({12, 128, 64}))), 1U);
}

// A window for each channel is computed in tiles of the product that reads it, unless its matrix is
// larger than the second-level cache; a convolution over all channels, or what two read, is not,
// and pooling takes longer in tiles than its result takes to read.
TEST_F(KernelCounts, AWindowForEachChannelAndAProductAreOne) {
  Window same;
  same.before = same.after = {1, 1};
  // Its channels lie side by side, as those of what is computed before do.
  const auto channels_last = [&](int64_t channels) {
    return permute(input({1, 14, 14, channels}), {0, 3, 1, 2});
  };
  const auto depthwise_of = [&](const Tensor& x) {
    const int64_t channels = x.shape()[1].value();
    return relu(conv(x, input({channels, 1, 3, 3}), input({channels}), same.with_groups(channels)));
  };
  const auto depthwise = [&](int64_t channels) { return depthwise_of(channels_last(channels)); };
  const auto pointwise = [&](const Tensor& x, int64_t channels) {
    return conv(x, input({channels, x.shape()[1].value(), 1, 1}), Tensor(), Window());
  };
  EXPECT_EQ(kernels(pointwise(depthwise(96), 24)), 1U);
  EXPECT_EQ(kernels(pointwise(depthwise_of(input({1, 96, 14, 14})), 24)), 2U);
  EXPECT_EQ(kernels(pointwise(depthwise(960), 960)), 2U);
  const Tensor one = depthwise(64);
  EXPECT_EQ(kernels(add(pointwise(one, 32), relu(pointwise(one, 32)))), 3U);
  EXPECT_EQ(kernels(pointwise(max_pool(input({1, 64, 14, 14}), same.with_kernel({3, 3})), 32)), 2U);
  const Tensor full = relu(conv(input({1, 64, 14, 14}), input({64, 64, 3, 3}), Tensor(), same));
  EXPECT_EQ(kernels(pointwise(full, 32)), 2U);
}

// The first would have no lanes, and every piece of the second would compute all of it.
TEST_F(KernelCounts, ProductsOfOneRowAreApart) {
  const Tensor hidden = relu(matmul(input({1, 256}), input({256, 1024})));
  const Tensor y = matmul(hidden, input({1024, 256}));
  EXPECT_EQ(kernels(y), 2U);
  EXPECT_EQ(kernels(y, 2), 2U);
}

}  // namespace
}  // namespace tiny
