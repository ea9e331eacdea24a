// Sums of products are fused on the tensor graph, and a value that is computed twice is one number.
#include "schedule/rewrite/form_fma.h"

#include <gtest/gtest.h>

#include "tensor/activation.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/matmul.h"
#include "tensor/reduce.h"
#include "tensor/value.h"
#include "tests/support/graph_test.h"
#include "tests/support/random_kernels.h"

namespace tiny {
namespace {

using testing::Floats;
using testing::floats_of;

class FormFmaTest : public testing::GraphTest {
 protected:
  static UOp formed(const Tensor& t) {
    const UOp node = t.node();
    const ChangedGraph out = form_fma({&node, 1});
    EXPECT_TRUE(out.origin_of(out.roots[0]) == node);
    return out.roots[0];
  }
  static bool is_fused(const Tensor& t) { return formed(t).op() == Op::Fma; }

  Tensor x_ = given({4, 6}), y_ = given({4, 6}), z_ = given({4, 6});
};

TEST_F(FormFmaTest, ASumOfAProductIsOneRounding) {
  EXPECT_TRUE(is_fused(add(mul(x_, y_), z_)));
  EXPECT_TRUE(is_fused(add(z_, mul(x_, y_))));
  EXPECT_TRUE(is_fused(add(mul(x_, number(x_, 3)), number(x_, 1))));
  EXPECT_TRUE(is_fused(add(mul(matmul(x_, given({6, 6})), y_), z_)));
  const UOp second = formed(add(mul(x_, y_), mul(y_, z_)));
  EXPECT_TRUE(second.op() == Op::Fma && second.src(2) == mul(x_, y_).node());
}

TEST_F(FormFmaTest, WhoReadsTheProductDecidesNothing) {
  const Tensor product = mul(x_, y_);
  const UOp both = formed(div(add(product, z_), product));
  EXPECT_EQ(both.src(0).op(), Op::Fma);
  EXPECT_EQ(both.src(1).op(), Op::Mul);
}

TEST_F(FormFmaTest, AProductInMemoryStays) {
  Tensor product = mul(x_, y_);
  const Tensor total = add(product, z_);
  const UOp roots[] = {total.node(), reshape(product, {Dim(24)}).node()};
  EXPECT_TRUE(form_fma(roots).roots[0] == roots[0]);
  EXPECT_FALSE(is_fused(add(contiguous(product), z_)));
  EXPECT_TRUE(is_fused(total));
  Tensor* const computed[] = {&product};
  realize(computed);
  EXPECT_FALSE(is_fused(total));
}

TEST_F(FormFmaTest, ResultsThatBecomeOneNodeHaveMemoryEach) {
  const Tensor product = mul(x_, y_);
  Tensor one = add(product, z_), other = add(z_, product);
  Tensor negative = neg(add(product, y_)), same = neg(add(y_, product));
  Tensor* const all[] = {&one, &other, &negative, &same};
  realize(all);
  EXPECT_EQ(floats_of(one), floats_of(other));
  EXPECT_EQ(floats_of(negative), floats_of(same));
}

TEST_F(FormFmaTest, WhatIsNoSumOfALightProductStays) {
  EXPECT_FALSE(is_fused(sub(mul(x_, y_), z_)));
  EXPECT_FALSE(is_fused(sub(z_, mul(x_, y_))));
  const Tensor c = matmul(x_, given({6, 6}));
  EXPECT_FALSE(is_fused(add(mul(c, sigmoid(c)), z_)));
  EXPECT_FALSE(is_fused(add(mul(exp(x_), exp(y_)), z_)));
  EXPECT_FALSE(is_fused(add(mul(cast(x_, kInt32), cast(y_, kInt32)), cast(z_, kInt32))));
  EXPECT_FALSE(is_fused(add(mul(cast(x_, kFloat16), cast(y_, kFloat16)), cast(z_, kFloat16))));
}

// Normal numbers, which products round.
Floats random_floats(int64_t count, uint64_t seed) {
  testing::Choices choices(seed);
  Floats out;
  for (int64_t i = 0; i < count; ++i)
    out.push_back(static_cast<float>(choices.below(1 << 24) - (1 << 23)) / (1 << 22));
  return out;
}

// How many rows have no element that equals the row's greatest; what is computed with what.
enum class Together { All, GreatestFirst, ProductToo };

int64_t rows_without_their_greatest(const Ref<Context>& context, Together together) {
  constexpr int64_t kRows = 512, kColumns = 16;
  const Tensor x = testing::floats(context, random_floats(kRows * kColumns, 1), {kRows, kColumns});
  const Tensor w = testing::floats(context, random_floats(kColumns, 2));
  const Tensor b = testing::floats(context, random_floats(kColumns, 3));
  Tensor product = mul(x, w);
  const Tensor value = add(product, b);
  Tensor greatest = max(value, {1}, true);
  Tensor* const first[] = {&greatest, &product};
  if (together == Together::GreatestFirst) realize(std::span(first).first(1));
  if (together == Together::ProductToo) realize(first);
  const Tensor hit = equal(value, greatest);
  Tensor count = sum(cast(hit, kFloat32), {1});
  Tensor chosen = sum(where(hit, product, number(product, 0)), {1});
  Tensor* const rest[] = {&count, &chosen, &greatest};
  realize(rest);
  const Floats counts = floats_of(count);
  return std::ranges::count(counts, 0.0F);
}

TEST(OneRounding, OfAValueThatIsComputedAgain) {
  for (const BackendInfo& backend : testing::computing_backends())
    for (const int64_t fusion : {1, 0})
      for (const Together together :
           {Together::All, Together::GreatestFirst, Together::ProductToo}) {
        Flags flags = testing::flags_for(backend.name);
        flags.fusion = fusion;
        EXPECT_EQ(rows_without_their_greatest(make_ref<Context>(flags), together), 0)
            << backend.name << ", fusion " << fusion << ", case " << static_cast<int>(together);
      }
}

}  // namespace
}  // namespace tiny
