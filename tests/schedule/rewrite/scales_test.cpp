// Scales leave sums of products of widened values, and the graph has the same values.
#include "schedule/rewrite/scales.h"

#include <gtest/gtest.h>

#include <cmath>

#include "schedule/rewrite/narrow_operands.h"
#include "schedule/schedule.h"
#include "shape/movement_axis.h"
#include "shape/shape.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/window.h"
#include "tests/reference/reference.h"
#include "tests/support/graph_test.h"

namespace tiny {
namespace {

class RewriteScales : public testing::GraphTest {
 protected:
  Tensor constant(const Ints& shape, DType dtype) {
    std::vector<uint8_t> bytes;
    const int64_t count = product(to_shape(shape)).value() * dtype.bytes();
    // Halves of small exponents, whatever the type.
    for (int64_t i = 0; i < count; ++i)
      bytes.push_back(
          static_cast<uint8_t>(dtype.is_float() && i % 2 ? 0x3C + i / 2 % 4 : i * 37 + 11 * next_));
    ++next_;
    held_.push_back(from_data(context_, dtype, shape, bytes.data(), count));
    return held_.back();
  }
  // Computed data: nothing that could be taken for a constant.
  Tensor data(const Ints& shape, DType dtype) {
    return dtype == kFloat32 ? neg(given(shape)) : neg(constant(shape, dtype));
  }
  Tensor dequantized(const Tensor& t, const Tensor& point, const Tensor& scale) {
    return cast(cast(t, kInt32) - cast(point, kInt32), kFloat32) * scale;
  }
  Tensor scale(const Ints& shape) { return abs(given(shape)) + number(given({}), 0.375); }

  struct Found {
    bool words = false;   // a sum that the target multiplies in words
    bool narrow = false;  // a product of a constant that stays narrow, which nothing scales
  };
  // Values are the oracle's, but for the rounding of the sum.
  Found rewritten(const Tensor& t, DotSet dots = kAllDots) {
    Machine target = avx512_machine();
    target.dots = dots;
    target.l2_bytes = target.l3_bytes = 1024;  // what is read is in memory
    const auto reached = [&](const UOp& root) {
      std::vector<uint8_t> varies(root.graph().id_limit());
      for (const UOp& u : topological({&root, 1})) {
        varies[u.id()] = u.op() == Op::Neg && has_memory(below_movement(u.src(0))) ? 1 : 0;
        for (const UOp& s : u.src()) varies[u.id()] |= varies[s.id()];
      }
      return varies;
    };
    const UOp out = rewrite_scales({&t.node(), 1}, target, reached(t.node())).roots.front();
    const reference::Values want = reference::evaluate(t.node());
    const reference::Values got = reference::evaluate(out);
    EXPECT_EQ(got.shape, want.shape);
    double largest = 0, error = 0;
    for (size_t i = 0; i < want.real.size(); ++i) {
      largest = std::max(largest, std::abs(want.real[i]));
      error = std::max(error, std::abs(got.real[i] - want.real[i]));
    }
    EXPECT_GT(largest, 0);
    EXPECT_LE(error, 1e-5 * largest);
    Found found;
    const std::vector<uint8_t> varies = reached(out);
    for (const UOp& u : topological({&out, 1})) {
      found.words |= u.dtype() == kInt32 && dot_kind_of(u, target).has_value();
      if (u.op() != Op::ReduceAxis) continue;
      for (const size_t side : {size_t{0}, size_t{1}})
        if (const auto narrow = narrow_factor(u, side, target, varies))
          found.narrow |= narrow->scales().empty();
    }
    return found;
  }

 private:
  int64_t next_ = 1;
};

TEST_F(RewriteScales, ProductsOfQuantizedValuesAreProductsOfBytes) {
  const Tensor a = dequantized(data({9, 24}, kUInt8), constant({}, kUInt8), scale({}));
  const Tensor b = dequantized(constant({24, 20}, kInt8), constant({}, kInt8), scale({}));
  EXPECT_TRUE(rewritten(matmul(a, b)).words);
  EXPECT_FALSE(rewritten(matmul(a, b), 0).words);
  const Tensor plain = cast(constant({24, 20}, kInt8), kFloat32) * scale({20});
  EXPECT_TRUE(rewritten(matmul(a, plain)).words);
}

TEST_F(RewriteScales, ScalesMayBelongToRowsAndColumns) {
  const Tensor rows = dequantized(data({9, 24}, kUInt8), constant({9, 1}, kUInt8), scale({9, 1}));
  const Tensor columns = dequantized(constant({24, 20}, kInt8), constant({20}, kInt8), scale({20}));
  EXPECT_TRUE(rewritten(matmul(rows, columns)).words);
  const Tensor steps =
      dequantized(constant({24, 20}, kInt8), constant({20}, kInt8), scale({24, 1}));
  EXPECT_FALSE(rewritten(matmul(rows, steps)).words);
}

TEST_F(RewriteScales, ConvolutionsMayBePadded) {
  const Tensor x = dequantized(data({1, 8, 6, 6}, kUInt8), constant({}, kUInt8), scale({}));
  const Tensor w =
      dequantized(constant({16, 8, 3, 3}, kInt8), constant({}, kInt8), scale({16, 1, 1, 1}));
  EXPECT_TRUE(rewritten(conv(x, w, Tensor(), {})).words);
  Window padded;
  padded.before = padded.after = {1, 1};
  const Tensor symmetric = cast(data({1, 8, 6, 6}, kUInt8), kFloat32) * scale({});
  EXPECT_TRUE(rewritten(conv(symmetric, w, Tensor(), padded)).words);
  EXPECT_TRUE(rewritten(conv(x, w, Tensor(), padded)).words);
}

// The taps of a window of one step are steps of the sum too, along which everything is the same.
TEST_F(RewriteScales, ChannelsOfPointwiseConvolutionsMayHaveTheirScales) {
  const Tensor x = dequantized(data({1, 16, 4, 4}, kUInt8), constant({}, kUInt8), scale({}));
  const Tensor w =
      cast(constant({12, 16, 1, 1}, kInt8), kFloat32) * reshape(scale({12}), {12, 1, 1, 1});
  EXPECT_TRUE(rewritten(conv(x, w, Tensor(), {})).words);
}

// 255 * 255 * 33026 is more than 32 bits hold.
TEST_F(RewriteScales, SumsThatCouldOverflowStay) {
  const auto product_of = [&](int64_t steps) {
    const Tensor a = dequantized(data({8, steps}, kUInt8), constant({}, kUInt8), scale({}));
    const Tensor b = dequantized(constant({steps, 8}, kInt8), constant({}, kInt8), scale({}));
    const UOp node = matmul(a, b).node();
    std::vector<uint8_t> varies(node.graph().id_limit(), 1);
    Machine target = avx512_machine();
    target.dots = kAllDots;
    const UOp out = rewrite_scales({&node, 1}, target, varies).roots.front();
    return !(out == node);
  };
  EXPECT_TRUE(product_of(33025));
  EXPECT_FALSE(product_of(33026));
}

TEST_F(RewriteScales, NarrowConstantsOfFewRowsAreScaledAfterTheSum) {
  const Tensor x = data({2, 128}, kFloat32);
  const Tensor bytes = constant({128, 48}, kInt8);
  const auto wide = [](const Tensor& t) { return cast(t, kFloat32); };
  EXPECT_TRUE(rewritten(matmul(x, wide(bytes) * scale({}))).narrow);
  EXPECT_TRUE(rewritten(matmul(x, wide(bytes) * scale({48}))).narrow);
  EXPECT_TRUE(rewritten(matmul(x, dequantized(bytes, constant({48}, kInt8), scale({})))).narrow);
  EXPECT_TRUE(rewritten(matmul(x, wide(constant({128, 48}, kFloat16)) * scale({}))).narrow);
  // Scales of steps stay in the sum.
  EXPECT_TRUE(rewritten(matmul(x, wide(bytes) * scale({128, 1}))).narrow);
  const Tensor turned = transpose(wide(constant({48, 128}, kInt8)) * scale({48, 1}), 0, 1);
  EXPECT_TRUE(rewritten(matmul(x, turned)).narrow);
}

TEST_F(RewriteScales, OtherProductsStay) {
  const Tensor x = data({2, 128}, kFloat32);
  const Tensor bytes = cast(constant({128, 48}, kInt8), kFloat32);
  EXPECT_FALSE(rewritten(matmul(data({64, 128}, kFloat32), bytes * scale({}))).narrow) << "rows";
  EXPECT_FALSE(rewritten(matmul(x, cast(data({128, 48}, kInt8), kFloat32))).narrow) << "varies";
  EXPECT_FALSE(rewritten(matmul(x, bytes * given({128, 48}))).narrow) << "two of its size";
  const Tensor small = cast(constant({16, 16}, kInt8), kFloat32);
  EXPECT_FALSE(rewritten(matmul(data({2, 16}, kFloat32), small)).narrow) << "small";
}

}  // namespace
}  // namespace tiny
