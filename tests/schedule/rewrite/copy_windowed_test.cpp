// Copies of what strided windows read at a graph's border.
#include "schedule/rewrite/copy_windowed.h"

#include <gtest/gtest.h>

#include "engine/realize.h"
#include "schedule/schedule.h"
#include "tensor/elementwise.h"
#include "tensor/movement.h"
#include "tensor/window.h"
#include "tests/reference/reference.h"
#include "tests/support/graph_test.h"

namespace tiny {
namespace {

class CopyWindowed : public testing::GraphTest {
 protected:
  Tensor depthwise(const Tensor& x, int64_t kernel, int64_t stride) {
    Window w;
    w.before = w.after = {kernel / 2, kernel / 2};
    w.strides = {stride, stride};
    const int64_t channels = x.shape()[1].value();
    return conv(x, given({channels, 1, kernel, kernel}), Tensor(), w.with_groups(channels));
  }
  size_t copies(const Tensor& t) {
    const UOp root = t.node();
    const ChangedGraph changed = copy_windowed({&root, 1}, avx512_machine());
    size_t count = 0;
    for (const UOp& u : topological(changed.roots, has_memory))
      count += u.op() == Op::Contiguous ? 1 : 0;
    return count;
  }
  void check(Tensor t) {
    const reference::Values want = reference::evaluate(t.node());
    testing::Floats got(want.size());
    read(t, got.data(), std::ssize(got) * 4);
    EXPECT_EQ(reference::difference(want, got.data()), "");
  }
};

TEST_F(CopyWindowed, LargeStridedWindowsReadACopyWithChannelsLast) {
  const Tensor x = given({1, 32, 30, 31});
  for (const int64_t kernel : {7, 9}) {
    const Tensor y = depthwise(x, kernel, 2);
    EXPECT_EQ(copies(y), 1U) << kernel;
    check(y);
  }
  // Two that read the same value read one copy.
  const Tensor both = add(depthwise(x, 9, 2), depthwise(x, 9, 2));
  EXPECT_EQ(copies(both), 1U);
  check(both);
}

TEST_F(CopyWindowed, OthersReadWhatTheyWereGiven) {
  const Tensor x = given({1, 32, 30, 31});
  EXPECT_EQ(copies(depthwise(x, 9, 1)), 0U);                      // neighbours
  EXPECT_EQ(copies(depthwise(x, 3, 2)), 0U);                      // too small to pay for it
  EXPECT_EQ(copies(depthwise(given({1, 3, 64, 64}), 9, 2)), 0U);  // few channels
  Window w;
  w.strides = {2, 2};
  EXPECT_EQ(copies(conv(x, given({16, 32, 7, 7}), Tensor(), w)),
            0U);  // each is read for all columns
  const Tensor computed = conv(x, given({32, 32, 1, 1}), Tensor(), Window());
  EXPECT_EQ(copies(depthwise(computed, 9, 2)), 0U);  // lies as its kernels like it
}

}  // namespace
}  // namespace tiny
