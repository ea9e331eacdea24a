// Bytes that are quantised again as they were are read as they are, and the graph has the same
// values.
#include "schedule/rewrite/requantized.h"

#include <gtest/gtest.h>

#include <cmath>

#include "schedule/schedule.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/movement.h"
#include "tensor/quantization.h"
#include "tests/reference/reference.h"
#include "tests/support/graph_test.h"

namespace tiny {
namespace {

class DropRequantized : public testing::GraphTest {
 protected:
  // Every byte once.
  Tensor bytes(DType dtype) {
    std::vector<uint8_t> all(256);
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint8_t>(i);
    held_.push_back(from_data(context_, dtype, {16, 16}, all.data(), 256));
    return held_.back();
  }
  QuantizationParameters parameters(double scale, int64_t zero, DType dtype) {
    return {full(context_, kFloat32, {}, scale), full(context_, dtype, {}, double(zero))};
  }
  Tensor real(const Tensor& x, double scale, int64_t zero) {
    return dequantize(x, parameters(scale, zero, x.dtype()), kFloat32);
  }
  Tensor coded(const Tensor& x, double scale, int64_t zero, DType dtype) {
    return quantize(x, parameters(scale, zero, dtype), dtype);
  }

  // What is left, whose values are the same.
  UOp rewritten(const Tensor& t) {
    const UOp reader = t.node().graph().make(Op::Contiguous, {t.node()});
    const UOp out(drop_requantized({&reader, 1}).roots.front().src(0));
    const reference::Values want = reference::evaluate(t.node());
    const reference::Values got = reference::evaluate(out);
    EXPECT_EQ(got.shape, want.shape);
    EXPECT_EQ(got.whole, want.whole);
    EXPECT_EQ(got.real, want.real);
    return out;
  }
  static size_t operations(const UOp& root) {
    size_t count = 0;
    for (const UOp& u : topological({&root, 1}, has_memory)) count += has(u.op(), kElementwise);
    return count;
  }
};

TEST_F(DropRequantized, TheSameScaleAndZeroPointGiveTheBytes) {
  for (const double scale : {1.0, 0.0183679, 3.1e-9, 7.7e11})
    for (const int64_t zero : {int64_t{0}, int64_t{120}}) {
      for (const DType dtype : {kUInt8, kInt8}) {
        const Tensor x = bytes(dtype);
        const Tensor moved = reshape(transpose(real(x, scale, zero), 0, 1), {2, 8, 16});
        const UOp out = rewritten(coded(moved, scale, zero, dtype));
        EXPECT_EQ(operations(out), 0u) << scale << ' ' << zero << ' ' << dtype.is_unsigned();
      }
    }
}

TEST_F(DropRequantized, ManyInARowAreDropped) {
  Tensor y = bytes(kUInt8);
  for (int i = 0; i < 5; ++i)
    y = coded(reshape(real(y, 0.0047175, 134), {256 >> i, int64_t{1} << i}), 0.0047175, 134,
              kUInt8);
  EXPECT_EQ(operations(rewritten(y)), 0u);
}

TEST_F(DropRequantized, ActivationsBetweenAreClamps) {
  const Tensor x = bytes(kUInt8);
  EXPECT_EQ(operations(rewritten(coded(relu(real(x, 0.03, 100)), 0.03, 100, kUInt8))), 1u);
  const Tensor clipped = minimum(relu(real(x, 0.5, 100)), full(context_, kFloat32, {}, 6));
  EXPECT_EQ(operations(rewritten(coded(clipped, 0.5, 100, kUInt8))), 2u);
  EXPECT_EQ(operations(rewritten(coded(neg(real(x, 0.5, 128)), 0.5, 128, kUInt8))),
            operations(coded(neg(real(x, 0.5, 128)), 0.5, 128, kUInt8).node()));
}

// An output, or what it is a view of, is computed: the bytes are another value's memory.
TEST_F(DropRequantized, WhatIsAskedForStays) {
  const Tensor y = coded(real(bytes(kUInt8), 0.03, 100), 0.03, 100, kUInt8);
  const Tensor view = transpose(y, 0, 1);
  for (const Tensor& root : {y, view})
    EXPECT_TRUE(drop_requantized({&root.node(), 1}).roots.front() == root.node());
}

TEST_F(DropRequantized, WhatChangesBytesStays) {
  const Tensor x = bytes(kUInt8);
  const auto stays = [&](const Tensor& t) { return rewritten(t) == t.node(); };
  EXPECT_TRUE(stays(coded(real(x, 0.03, 100), 0.031, 100, kUInt8)));  // another scale
  EXPECT_TRUE(stays(coded(real(x, 0.03, 100), 0.03, 101, kUInt8)));   // another zero point
  EXPECT_TRUE(stays(coded(real(x, 0.03, 100), 0.03, 100, kInt8)));    // another type
  EXPECT_TRUE(stays(coded(real(x, INFINITY, 100), 0.03, 100, kUInt8)));
  EXPECT_TRUE(stays(coded(real(x, 0.03, 100) * real(x, 0.03, 100), 0.03, 100, kUInt8)));
  // Around the elements stand zeros, whose byte is the zero point.
  EXPECT_TRUE(
      stays(coded(pad(real(x, 0.03, 100), Shape(2, Dim(1)), Shape(2, Dim(1))), 0.03, 100, kUInt8)));
}

}  // namespace
}  // namespace tiny
