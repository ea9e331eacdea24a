// What was computed is not computed again, and nothing but live tensors is kept.
#include <gtest/gtest.h>
#include <malloc.h>

#include "engine/context.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"
#include "tensor/value.h"
#include "tests/support/context.h"
#include "tests/support/tensors.h"

namespace tiny {
namespace {

class RealizedOnce : public ::testing::Test {
 protected:
  Tensor make(float first, const Ints& shape) {
    std::vector<float> values;
    for (int64_t i = 0; i < product(to_shape(shape)).value(); ++i)
      values.push_back(first + static_cast<float>(i));
    return testing::floats(context_, values, shape);
  }
  int64_t launches() { return context_->counters().launches; }
  // How many kernels `work` launches.
  template <class Work>
  int64_t launched_by(Work work) {
    const int64_t before = launches();
    work();
    return launches() - before;
  }
  static void realize_one(Tensor& t) {
    Tensor* one[] = {&t};
    realize(one);
  }

  Ref<Context> context_ = testing::new_context("interp");
};

TEST_F(RealizedOnce, AValueThatAnotherWasMadeFrom) {
  const Tensor a = make(0, {4, 4});
  Tensor b = sum(matmul(a, a), {1});
  Tensor c = mul(b, Tensor::weak_float(context_, 2));
  const int64_t of_b = launched_by([&] { realize_one(b); });
  EXPECT_GE(of_b, 1);
  EXPECT_EQ(launched_by([&] { realize_one(c); }), 1);
  EXPECT_EQ(launched_by([&] { realize_one(b), realize_one(c); }), 0);
}

TEST_F(RealizedOnce, TheSameValueBuiltTwiceWhileOneIsAlive) {
  const Tensor a = make(0, {4});
  Tensor b = mul(a, a);
  Tensor same = mul(a, a);
  Tensor later = add(b, a);
  EXPECT_EQ(launched_by([&] { realize_one(b); }), 1);
  EXPECT_EQ(launched_by([&] { realize_one(same); }), 0);
  EXPECT_EQ(launched_by([&] { realize_one(later); }), 1);
}

TEST_F(RealizedOnce, ViewsOfOneValueInEitherOrder) {
  Tensor b = mul(make(1, {4, 2}), make(2, {4, 2}));
  Tensor turned = transpose(b, 0, 1);
  Tensor row = slice(b, {1, 0}, {2, 2});
  EXPECT_EQ(launched_by([&] { realize_one(turned); }), 1);
  EXPECT_EQ(launched_by([&] { realize_one(b), realize_one(row); }), 0);
  EXPECT_EQ(strides_of(turned), (Ints{1, 2}));
}

TEST_F(RealizedOnce, AWriteIsDoneOnce) {
  Tensor a = make(0, {4});
  assign(a, add(a, Tensor::weak_float(context_, 1)));
  Tensor reader = mul(a, a);
  EXPECT_EQ(launched_by([&] { realize_one(reader); }), 1) << "a kernel that stores both";
  EXPECT_EQ(launched_by([&] { realize_one(a); }), 0);
  EXPECT_EQ(launched_by([&] { realize_one(reader); }), 0);
}

// Nodes and bytes after many iterations of building, computing and releasing.
TEST_F(RealizedOnce, MemoryStaysFlatOverTenThousandIterations) {
  Tensor weight = make(1, {16});
  Tensor window = slice(weight, {2}, {6});
  size_t nodes = 0;
  size_t bytes = 0;
  for (int i = 0; i < 10000; ++i) {
    Tensor a = make(static_cast<float>(i % 7), {16});
    Tensor b = add(mul(a, weight), Tensor::weak_float(context_, 1));
    Tensor c = sum(b, {0});
    realize_one(b);
    realize_one(c);
    Tensor reader = add(window, Tensor::weak_float(context_, 1));
    assign(weight, mul(weight, Tensor::weak_float(context_, 1)));
    Tensor part = slice(weight, {0}, {2});
    assign(part, reshape(c, {1}));
    // Three ways to leave a write: read by something, read itself, not read at all.
    if (i % 3 == 0) realize_one(reader);
    if (i % 3 != 2) realize_one(weight);
    if (i % 3 == 2) {
      Tensor sum_of_weight = sum(weight, {0});
      realize_one(sum_of_weight);
    }
    if (i == 999) {
      nodes = context_->graph().size();
      bytes = mallinfo2().uordblks;
    }
  }
  EXPECT_LE(context_->graph().size(), nodes + 16);
  EXPECT_LE(mallinfo2().uordblks, bytes + 64 * 1024);
}

}  // namespace
}  // namespace tiny
