// A kernel that is known by its structure is the one that lowering makes.
#include "schedule/lower_once.h"

#include <gtest/gtest.h>

#include "schedule/decide.h"
#include "schedule/lower.h"
#include "schedule/schedule.h"
#include "tensor/activation.h"
#include "tensor/elementwise.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"
#include "tensor/value.h"
#include "tensor/window.h"
#include "tests/support/graph_test.h"

namespace tiny {
namespace {

class LowerOnceTest : public testing::GraphTest {
 protected:
  static UOp stored(const Tensor& t) { return t.graph().make(Op::Contiguous, {t.node()}); }

  // The same kernel: nodes are interned, so that equal ones are one.
  static void expect_same(const ScheduledKernel& a, const ScheduledKernel& b) {
    EXPECT_EQ(a.kernel.roots, b.kernel.roots);
    EXPECT_EQ(a.kernel.name, b.kernel.name);
    EXPECT_EQ(a.kernel.facts, b.kernel.facts);
    EXPECT_EQ(a.kernel.variables, b.kernel.variables);
    ASSERT_EQ(a.kernel.ranges.size(), b.kernel.ranges.size());
    for (size_t i = 0; i < a.kernel.ranges.size(); ++i)
      EXPECT_EQ(a.kernel.ranges[i].range, b.kernel.ranges[i].range);
    ASSERT_EQ(a.kernel.params.size(), b.kernel.params.size());
    for (size_t i = 0; i < a.kernel.params.size(); ++i) {
      EXPECT_EQ(a.kernel.params[i].read, b.kernel.params[i].read);
      EXPECT_EQ(a.kernel.params[i].written, b.kernel.params[i].written);
    }
    EXPECT_EQ(a.values, b.values);
    ASSERT_EQ(a.stores.size(), b.stores.size());
    for (size_t i = 0; i < a.stores.size(); ++i) {
      EXPECT_EQ(a.stores[i].value, b.stores[i].value);
      EXPECT_EQ(a.stores[i].destination, b.stores[i].destination);
      EXPECT_EQ(a.stores[i].view, b.stores[i].view);
    }
    ASSERT_EQ(a.reads.size(), b.reads.size());
    for (size_t i = 0; i < a.reads.size(); ++i) {
      EXPECT_EQ(a.reads[i].base, b.reads[i].base);
      EXPECT_EQ(a.reads[i].elements, b.reads[i].elements);
      EXPECT_EQ(a.reads[i].in_place, b.reads[i].in_place);
      EXPECT_EQ(a.reads[i].load, b.reads[i].load);
    }
  }

  // Of how many stored values kernels were lowered, and how many there are.
  std::pair<int64_t, int64_t> lower_all(std::span<const UOp> roots) {
    Decision decision = decide_stored(roots, avx512_machine());
    LowerOnce once(decision);
    int64_t count = 0;
    for (const UOp& u : decision.order) {
      if (has_memory(u) || !decision.stored[u.id()] || u.op() == Op::After) continue;
      ++count;
      expect_same(once.value(u), lower_value(u, decision));
    }
    return {once.lowered(), count};
  }
  std::pair<int64_t, int64_t> lower_all(const std::vector<Tensor>& tensors) {
    std::vector<UOp> roots;
    for (const Tensor& t : tensors) roots.push_back(stored(t));
    return lower_all(roots);
  }

  Tensor plus(const Tensor& x, double value) const {
    return add(x, Tensor::weak_float(context_, value));
  }
  static Tensor fold(const Tensor& a, const Tensor& b, const Tensor& c) {
    return sub(mul(a, b), c);
  }
  Tensor conv3(const Tensor& x, int64_t channels) {
    Window same;
    same.before = same.after = {1, 1};
    return relu(conv(x, given({channels, x.shape()[1].value(), 3, 3}), Tensor(), same));
  }
};

using Counts = std::pair<int64_t, int64_t>;

// An axis of which one place is read is a part of the offset: what looks at loads walks fewer
// indices.
TEST_F(LowerOnceTest, LoadsHaveNoAxesOfOnePlace) {
  const Tensor x = testing::float_input(context_, {3, 4, 1, 5});
  const UOp part = stored(tiny::exp(slice_axis(x, 0, 2, 3)));
  const Decision decision = decide_stored({&part, 1}, avx512_machine());
  const UOp load = lower_value(part, decision).reads.front().load;
  const ViewArg& view = load.view_arg();
  EXPECT_EQ(view.shape, (Ints{4, 5}));
  EXPECT_EQ(view.strides, (Ints{5, 1}));
  EXPECT_EQ(view.offset, 40);
}

TEST_F(LowerOnceTest, RepeatedLayersAreLoweredOnce) {
  Tensor x = given({1, 8, 6, 7});
  for (int layer = 0; layer < 6; ++layer) x = conv3(x, 8);
  // The first reads an input, which lies flat, and the last is stored for who wants it.
  EXPECT_EQ(lower_all({x}), Counts(3, 6));
}

TEST_F(LowerOnceTest, SizesOfArithmeticAreExchanged) {
  EXPECT_EQ(lower_all({neg(given({4, 6})), neg(given({6, 4})), neg(given({2, 9}))}), Counts(1, 3));
  const auto both = [&](const Ints& shape) {
    return fold(given(shape), given(shape), given(shape));
  };
  EXPECT_EQ(lower_all({both({5}), both({7}), both({3, 2}), both({2, 3}), both({2, 2, 2})}),
            Counts(3, 5));
  EXPECT_EQ(lower_all({plus(given({4, 6}), 1), plus(given({6, 4}), 1), plus(given({8, 3}), 1)}),
            Counts(1, 3));
  EXPECT_EQ(
      lower_all({cast(given({4}), kInt32), cast(given({5}), kInt32), cast(given({6}), kInt8)}),
      Counts(2, 3));
  const auto twice = [&](const Ints& shape) {
    const Tensor x = given(shape);
    return fold(x, x, x);
  };
  EXPECT_EQ(lower_all({twice({5}), both({6}), twice({7})}), Counts(2, 3));
}

// What is spread over the shape, or lies in another order, has loops of its own.
TEST_F(LowerOnceTest, OtherSizesOfOtherOrdersAreOthers) {
  const auto row = [&](int64_t m, int64_t n) { return mul(given({m, n}), given({1, n})); };
  EXPECT_EQ(lower_all({row(4, 6), row(6, 4)}), Counts(2, 2));
  const auto turned = [&](int64_t m, int64_t n) { return relu(permute(given({m, n}), {1, 0})); };
  EXPECT_EQ(lower_all({turned(4, 6), turned(6, 4)}), Counts(2, 2));
  EXPECT_EQ(lower_all({relu(given({1, 6})), relu(given({6, 1})), relu(given({6, 2}))}),
            Counts(3, 3));
  const auto part = [&](int64_t n) { return relu(slice_axis(given({n}), 0, 1, n - 1)); };
  EXPECT_EQ(lower_all({part(5), part(6)}), Counts(2, 2));
}

TEST_F(LowerOnceTest, OtherShapesTypesAndConstantsAreOthers) {
  EXPECT_EQ(lower_all({plus(given({4, 6}), 1), plus(given({4, 6}), 2)}), Counts(2, 2));
  EXPECT_EQ(lower_all({relu(given({4, 6})), cast(relu(given({4, 6})), kFloat64)}), Counts(2, 2));
  EXPECT_EQ(lower_all({permute(given({4, 4}), {1, 0}), plus(given({4, 4}), 0)}), Counts(2, 2));
  EXPECT_EQ(lower_all({sum(given({4, 6}), {0}), sum(given({6, 4}), {1})}), Counts(2, 2));
}

TEST_F(LowerOnceTest, ItCountsWhichBuffersAreOne) {
  const Tensor x = given({4, 6});
  const Tensor y = given({4, 6});
  const Tensor z = given({4, 6});
  EXPECT_EQ(lower_all({fold(x, y, x), fold(x, y, y), fold(x, y, z), fold(z, y, z)}), Counts(3, 4));
}

TEST_F(LowerOnceTest, ItCountsWhereBuffersLie) {
  const Tensor x = relu(given({4, 6}));
  const Tensor y = relu(given({4, 6}));
  const UOp roots[] = {stored(x), stored(y), stored(exp(x.with(stored(x)))),
                       stored(exp(y.with(stored(y))))};
  Decision decision = decide_stored(roots, avx512_machine());
  LowerOnce once(decision);
  once.value(roots[2]);
  EXPECT_EQ(once.lowered(), 1);
  decision.layouts[roots[1].node()] = View{to_shape({4, 6}), to_shape({1, 4}), 0};
  expect_same(once.value(roots[3]), lower_value(roots[3], decision));
  EXPECT_EQ(once.lowered(), 2);
  expect_same(once.value(roots[2]), lower_value(roots[2], decision));
}

TEST_F(LowerOnceTest, ItCountsWhatIsStoredNow) {
  const Tensor x = exp(given({4, 6}));
  const UOp inner = stored(x);
  const UOp outer = stored(exp(x.with(inner)));
  Decision decision = decide_stored({&outer, 1}, avx512_machine());
  LowerOnce once(decision);
  expect_same(once.value(outer), lower_value(outer, decision));
  decision.stored[inner.id()] = 0;
  expect_same(once.value(outer), lower_value(outer, decision));
  EXPECT_EQ(once.lowered(), 2);
  decision.stored[inner.id()] = 1;
  expect_same(once.value(outer), lower_value(outer, decision));
  EXPECT_EQ(once.lowered(), 2);
}

TEST_F(LowerOnceTest, InAGraphWithWritesEveryKernelIsLoweredByItself) {
  Tensor x = given({4, 6});
  const Tensor a = relu(given({4, 6}));
  const Tensor b = relu(given({4, 6}));
  assign(x, a);
  const UOp roots[] = {x.node(), stored(relu(a)), stored(relu(b))};
  const auto [lowered, count] = lower_all(roots);
  EXPECT_EQ(lowered, count);
}

}  // namespace
}  // namespace tiny
