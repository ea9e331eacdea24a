// Realised tensors let go of their graphs, deep graphs need no stack, sizes may be symbolic.
#include "tensor/value.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/normalization.h"
#include "tensor/reduce.h"
#include "tensor/window.h"
#include "tests/support/context.h"

namespace tiny {
namespace {

class TensorValue : public ::testing::Test {
 protected:
  Ref<Context> context_ = testing::new_context("interp");
};

TEST_F(TensorValue, AThousandStepsLeaveAsManyNodesAsTen) {
  const float zeros[4] = {};
  Tensor x = from_data(context_, kFloat32, {4}, zeros, sizeof zeros);
  size_t after_ten = 0;
  for (int step = 0; step < 1000; ++step) {
    x = add(mul(x, Tensor::weak_float(context_, 0.5)), Tensor::weak_int(context_, 1));
    Tensor* one[] = {&x};
    realize(one);
    if (step == 9) after_ten = context_->graph().size();
  }
  EXPECT_EQ(context_->graph().size(), after_ten);
  float value[4];
  read(x, value, sizeof value);
  EXPECT_FLOAT_EQ(value[3], 2);
}

TEST_F(TensorValue, AChainOfHalfAMillionNodesNeedsNoStack) {
  const float one[1] = {1};
  Tensor x = from_data(context_, kFloat32, {1}, one, sizeof one);
  const size_t before = context_->graph().size();
  Tensor deep = x;
  for (int i = 0; i < 500000; ++i) deep = i % 2 ? neg(deep) : sqrt(deep);
  EXPECT_EQ(to_string(deep.shape()), "[1]");
  EXPECT_GT(context_->graph().size(), 400000u);
  deep = x;
  EXPECT_EQ(context_->graph().size(), before);
}

TEST_F(TensorValue, ViewsOfOneMemoryStayViews) {
  std::vector<float> numbers(12);
  for (size_t i = 0; i < 12; ++i) numbers[i] = static_cast<float>(i);
  Tensor a =
      mul(from_data(context_, kFloat32, {3, 4}, numbers.data(), 48), Tensor::weak_int(context_, 2));
  Tensor turned = permute(a, {1, 0});
  Tensor* both[] = {&a, &turned};
  realize(both);
  EXPECT_EQ(strides_of(turned), (Ints{1, 4}));
  float values[12];
  read(turned, values, sizeof values);
  EXPECT_EQ(values[1], 8);
  // Realised once: no further kernel is needed, and the graph is memory alone.
  EXPECT_EQ(turned.node().src(0).op() == Op::Buffer || turned.node().op() == Op::AsStrided, true);
}

TEST_F(TensorValue, SymbolicSizesGoThroughTheLibrary) {
  Graph& graph = context_->graph();
  const Dim n(graph.variable("n", 1, 64));
  const Tensor x = full(context_, kFloat32, {n, Dim(6)}, 1);
  const Tensor w = full(context_, kFloat32, {Dim(6), Dim(2)}, 1);
  EXPECT_TRUE(matmul(x, w).shape() == (Shape{n, Dim(2)}));
  EXPECT_TRUE(reshape(x, {n, 2, -1}).shape() == (Shape{n, Dim(2), Dim(3)}));
  EXPECT_TRUE(reshape(x, {-1}).shape() == (Shape{n * Dim(6)}));
  EXPECT_TRUE(layer_norm(x, Tensor(), Tensor()).shape() == x.shape());
  EXPECT_TRUE(mean(x, {0}).shape() == (Shape{Dim(6)}));
  EXPECT_TRUE(argmax(x, 1).shape() == (Shape{n}));
  const Tensor image = full(context_, kFloat32, {n, Dim(2), Dim(5), Dim(5)}, 1);
  const Tensor kernel = full(context_, kFloat32, {Dim(4), Dim(2), Dim(3), Dim(3)}, 1);
  EXPECT_TRUE(conv(image, kernel, Tensor(), {}).shape() == (Shape{n, Dim(4), Dim(3), Dim(3)}));
  EXPECT_TRUE(max_pool(image, Window().with_kernel({2, 2})).shape() ==
              (Shape{n, Dim(2), Dim(4), Dim(4)}));
  // What cannot be is said, not computed.
  EXPECT_THROW(reshape(x, {n, Dim(5)}), Error);
  EXPECT_THROW(add(x, full(context_, kFloat32, {Dim(3), Dim(6)}, 1)), Error);
  float value = 0;
  EXPECT_THROW(
      {
        Tensor t = x;
        read(t, &value, 4);
      },
      Error);
}

}  // namespace
}  // namespace tiny
