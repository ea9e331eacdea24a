#include "engine/size.h"

#include <gtest/gtest.h>

#include "tests/support/context.h"

namespace tiny {
namespace {

TEST(SizeExpression, IsAMultipleOfAVariable) {
  const Ref<Context> context = testing::new_context("interp");
  const UOp n = context->graph().variable("n", 1, 9), m = context->graph().variable("m", 1, 9);
  const std::vector<UOp> variables{n, m};
  const auto multiple = [&](const Dim& dim) { return SizeExpression(dim, variables).multiple(); };
  const auto plain = multiple(Dim(m)), five = multiple(Dim(m) * Dim(5));
  ASSERT_TRUE(plain && five);
  EXPECT_EQ(plain->variable, 1u);
  EXPECT_EQ(plain->factor, 1);
  EXPECT_EQ(five->variable, 1u);
  EXPECT_EQ(five->factor, 5);
  for (const Dim& other :
       {Dim(4), Dim(n) * Dim(m), Dim(n) + Dim(4), Dim(n) * Dim(-2), Dim(n) - Dim(m)})
    EXPECT_FALSE(multiple(other)) << to_string(other);
}

}  // namespace
}  // namespace tiny
