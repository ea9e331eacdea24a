// Sums of products of bytes are sums of floats where these hold them and bytes are not multiplied
// in words, with the same values.
#include "schedule/rewrite/float_sums.h"

#include <gtest/gtest.h>

#include "ir/dot.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/matmul.h"
#include "tests/reference/reference.h"
#include "tests/support/graph_test.h"

namespace tiny {
namespace {

class FloatSums : public testing::GraphTest {
 protected:
  Tensor greatest(const Ints& shape, DType dtype) {
    const std::vector<uint8_t> bytes(static_cast<size_t>(shape[0] * shape[1]),
                                     dtype == kInt8 ? uint8_t{0x80} : uint8_t{0xFF});
    return cast(from_data(context_, dtype, shape, bytes.data(), std::ssize(bytes)), kInt32);
  }
  // Whether the product is made of floats; values are the oracle's.
  bool has_floats(const Machine& target, int64_t steps, DType a, DType b) {
    const Tensor t = matmul(greatest({2, steps}, a), greatest({steps, 3}, b));
    const UOp out = sum_in_floats({&t.node(), 1}, target).roots.front();
    EXPECT_EQ(out.dtype(), t.dtype());
    EXPECT_EQ(reference::evaluate(out).real, reference::evaluate(t.node()).real);
    for (const UOp& u : topological({&out, 1}))
      if (u.op() == Op::ReduceAxis) return u.dtype().is_float();
    return false;
  }
};

TEST_F(FloatSums, WhereFloatsHoldThem) {
  Machine plain = avx2_machine();
  plain.dots = 0;
  EXPECT_TRUE(has_floats(plain, 32, kUInt8, kInt8));
  EXPECT_TRUE(has_floats(plain, 514, kUInt8, kInt8));  // 514 * 255 * 128 < 2^24
  EXPECT_FALSE(has_floats(plain, 515, kUInt8, kInt8));
  EXPECT_TRUE(has_floats(plain, 1024, kInt8, kInt8));
  EXPECT_FALSE(has_floats(plain, 1025, kInt8, kInt8));
  EXPECT_FALSE(has_floats(plain, 259, kUInt8, kUInt8));
  Machine dots = plain;
  dots.dots = dot_bit(DotKind::U8S8);
  EXPECT_FALSE(has_floats(dots, 32, kUInt8, kInt8));
}

}  // namespace
}  // namespace tiny
