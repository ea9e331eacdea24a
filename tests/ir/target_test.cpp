// What targets can do.
#include "ir/target.h"

#include <gtest/gtest.h>

namespace tiny {
namespace {

TEST(Target, SaysWhichOperationsHaveVectors) {
  EXPECT_FALSE(avx512_target().vectorises(Op::FloorDiv, kInt32));
  EXPECT_TRUE(avx512_target().vectorises(Op::Mul, kInt64));
  EXPECT_FALSE(avx2_target().vectorises(Op::Mul, kInt64));
  EXPECT_FALSE(avx2_target().vectorises(Op::Cast, kUInt32));
  EXPECT_TRUE(avx2_target().vectorises(Op::Mul, kUInt32));
  EXPECT_TRUE(avx2_target().vectorises(Op::Add, kInt64));
  EXPECT_FALSE(generic_target().vectorises(Op::Add, kFloat32)) << "it has no vectors";
}

}  // namespace
}  // namespace tiny
