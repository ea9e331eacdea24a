// Products of shifted bytes are products of bytes and corrections, and the graph has the same
// values.
#include "schedule/rewrite/zero_points.h"

#include <gtest/gtest.h>

#include "schedule/rewrite/narrow_operands.h"
#include "schedule/schedule.h"
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

class RewriteZeroPoints : public testing::GraphTest {
 protected:
  Tensor constant(const Ints& shape, DType dtype) {
    int64_t count = 1;
    for (int64_t n : shape) count *= n;
    std::vector<uint8_t> bytes;
    for (int64_t i = 0; i < count; ++i) bytes.push_back(static_cast<uint8_t>(i * 37 + 11 * next_));
    ++next_;
    return from_data(context_, dtype, shape, bytes.data(), count);
  }
  // Computed data: nothing that could be taken for a constant.
  Tensor data(const Ints& shape, DType dtype) { return neg(constant(shape, dtype)); }
  static Tensor wide(const Tensor& t) { return cast(t, kInt32); }
  static Tensor less(const Tensor& t, int64_t point) { return t - number_int(t, point); }

  // Whether the sum is one of products that the target has; values are the oracle's.
  static bool has_words(const Tensor& t, DotSet dots) {
    Machine target = avx512_machine();
    target.dots = dots;
    std::vector<uint8_t> varies(t.graph().id_limit());
    for (const UOp& u : topological({&t.node(), 1})) {
      varies[u.id()] = u.op() == Op::Neg && u.dtype().bytes() == 1 ? 1 : 0;
      for (const UOp& s : u.src()) varies[u.id()] |= varies[s.id()];
    }
    const UOp out = rewrite_zero_points({&t.node(), 1}, target, varies).roots.front();
    const reference::Values want = reference::evaluate(t.node());
    const reference::Values got = reference::evaluate(out);
    EXPECT_EQ(got.shape, want.shape);
    EXPECT_EQ(got.real, want.real);
    bool found = false;
    for (const UOp& u : topological({&out, 1})) found |= dot_kind_of(u, target).has_value();
    return found;
  }

 private:
  int64_t next_ = 1;
};

constexpr DotSet kMixed = dot_bit(DotKind::U8S8);

TEST_F(RewriteZeroPoints, ZeroPointsLeaveTheProduct) {
  const Tensor b = wide(constant({24, 20}, kInt8));
  EXPECT_TRUE(has_words(matmul(less(wide(data({9, 24}, kUInt8)), 128), b), kMixed));
  EXPECT_TRUE(has_words(matmul(less(wide(data({9, 24}, kUInt8)), 0), b), kMixed));
  EXPECT_TRUE(has_words(matmul(wide(data({9, 24}, kUInt8)), less(b, -3)), kMixed));
  EXPECT_TRUE(has_words(matmul(less(wide(data({9, 24}, kUInt8)), 7), less(b, 5)), kMixed));
}

TEST_F(RewriteZeroPoints, RowsAndColumnsMayHaveTheirOwn) {
  const Tensor rows = wide(data({9, 24}, kUInt8)) - wide(constant({9, 1}, kUInt8));
  const Tensor columns = wide(constant({24, 20}, kInt8)) - wide(constant({20}, kInt8));
  EXPECT_TRUE(has_words(matmul(rows, columns), kMixed));
  EXPECT_TRUE(has_words(matmul(reshape(rows, {3, 3, 24}), columns), kMixed));
}

TEST_F(RewriteZeroPoints, AConstantTakesTheSignThatTheTargetWants) {
  const Tensor signed_b = wide(constant({24, 20}, kInt8));
  const Tensor unsigned_b = wide(constant({24, 20}, kUInt8));
  EXPECT_TRUE(has_words(matmul(wide(data({9, 24}, kInt8)), signed_b), kMixed));
  EXPECT_TRUE(has_words(matmul(wide(data({9, 24}, kUInt8)), unsigned_b), kMixed));
  EXPECT_TRUE(
      has_words(matmul(less(wide(data({9, 24}, kUInt8)), 3), less(unsigned_b, 128)), kMixed));
  EXPECT_TRUE(
      has_words(matmul(wide(constant({9, 24}, kInt8)), wide(data({24, 20}, kInt8))), kMixed));
  // Of two that change neither can be made anew for each run at no cost.
  EXPECT_FALSE(has_words(matmul(wide(data({9, 24}, kInt8)), wide(data({24, 20}, kInt8))), kMixed));
}

TEST_F(RewriteZeroPoints, OtherSumsStay) {
  const Tensor a = wide(data({9, 24}, kUInt8));
  const Tensor b = wide(constant({24, 20}, kInt8));
  EXPECT_FALSE(has_words(matmul(a - wide(constant({24}, kUInt8)), b), kMixed));  // by step
  EXPECT_FALSE(has_words(matmul(less(a, 3), b), dot_bit(DotKind::Bf16)));
  EXPECT_FALSE(has_words(matmul(less(a, 3), wide(constant({24, 2}, kInt8))), kMixed));  // few uses
}

TEST_F(RewriteZeroPoints, AroundPaddingStandBytesThatAShiftMakesZero) {
  const Tensor filter = wide(constant({16, 8, 3, 3}, kInt8));
  const auto padded = [&](const Tensor& x) {
    Window options;
    options.before = options.after = {1, 2};
    return has_words(conv(x, filter, Tensor(), options), kMixed);
  };
  const Tensor bytes = wide(data({1, 8, 6, 6}, kUInt8));
  EXPECT_TRUE(padded(bytes));
  EXPECT_TRUE(padded(less(bytes, 9)));
  EXPECT_TRUE(padded(bytes - wide(constant({}, kUInt8))));
  EXPECT_FALSE(padded(less(bytes, 256))) << "no byte is that large";
  EXPECT_FALSE(padded(less(bytes, -1)));
  EXPECT_FALSE(padded(bytes - wide(constant({8, 1, 1}, kUInt8)))) << "a point for each channel";
}

}  // namespace
}  // namespace tiny
