// Gradients of products are the products that one would write by hand: what goes into one is
// computed once, before, and zeros around values are bounds of loops.
#include <gtest/gtest.h>

#include <algorithm>

#include "autograd/gradient.h"
#include "cost/machine.h"
#include "schedule/schedule.h"
#include "tensor/activation.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/recurrence.h"
#include "tensor/reduce.h"
#include "tensor/window.h"
#include "tests/support/context.h"
#include "tests/support/tensors.h"

namespace tiny {
namespace {

class ProductsTest : public ::testing::Test {
 protected:
  ProductsTest() : context_(testing::new_context("cpu")) {}

  Tensor input(const Ints& shape) { return testing::float_input(context_, shape); }

  std::vector<UOp> nodes_of_gradients(const Tensor& loss, const std::vector<Tensor>& by) {
    const Tensor losses[] = {loss};
    std::vector<UOp> nodes;
    for (const Tensor& slope : gradients(losses, {}, by)) nodes.push_back(slope.node());
    return nodes;
  }
  Schedule schedule_of_gradients(const Tensor& loss, const std::vector<Tensor>& by) {
    return make_schedule(nodes_of_gradients(loss, by), avx512_machine());
  }

  static size_t count(const Schedule& schedule, const std::function<bool(const UOp&)>& is) {
    size_t n = 0;
    for (const ScheduledKernel& k : schedule.kernels)
      for (const UOp& u : topological(k.kernel.roots)) n += is(u) ? 1 : 0;
    return n;
  }

  Ref<Context> context_;
};

Tensor total(const Tensor& x) {
  return sum(reshape(x, {product(x.shape())}), {0});
}

Tensor total_of_squares(const Tensor& x) {
  return total(x * x);
}

// What reaches the scores of attention is a product of its own, and not stored once a score.
TEST_F(ProductsTest, OfAttentionStoreNothingLargerThanScores) {
  const Tensor q = input({2, 64, 32}), k = input({2, 64, 32}), v = input({2, 64, 32});
  const Tensor seen = matmul(softmax(matmul(q, permute(k, {0, 2, 1})), 2), v);
  const Tensor loss = total(matmul(seen, input({32, 32})));
  for (const UOp& stored : schedule_of_gradients(loss, {q, k, v}).stored)
    EXPECT_LE(elements_at_most(stored), 2 * 64 * 64) << to_string(shape_of(stored));
}

TEST_F(ProductsTest, MasksAreAppliedBeforeWhatRepeatsThem) {
  const Tensor x = input({8, 64}), w = input({64, 64}), out = input({64, 64});
  const Tensor loss = total_of_squares(matmul(relu(matmul(x, w)), out));
  const size_t masked = count(schedule_of_gradients(loss, {w}), [](const UOp& u) {
    if (u.op() != Op::Reduce) return false;
    return std::ranges::any_of(topological({&u.src(0), 1}),
                               [](const UOp& s) { return s.op() == Op::Where; });
  });
  EXPECT_EQ(masked, 0U);
}

// The zeros around a convolution's gradient are those of loads out of range: bounds of the taps.
TEST_F(ProductsTest, ZerosAroundConvolutionsAreNoChoices) {
  for (const int64_t size : {7, 8, 16}) {
    const Tensor x = input({4, 32, size, size}), w = input({32, 32, 3, 3});
    Window same;
    same.before = same.after = {1, 1};
    const Tensor loss = total_of_squares(conv(conv(x, w, Tensor(), same), w, Tensor(), same));
    const auto is_choice = [](const UOp& u) { return u.op() == Op::Where; };
    EXPECT_EQ(count(schedule_of_gradients(loss, {x, w}), is_choice), 0U) << size;
  }
}

// What the taps of a window get from the filters of their group is summed in one kernel.
TEST_F(ProductsTest, NothingIsStoredForEachTapOfConvolutionsInGroups) {
  const Tensor x = input({4, 32, 16, 16}), w = input({8, 16, 5, 5});
  const Window window = Window{}.with_groups(2);
  for (const UOp& stored :
       schedule_of_gradients(total_of_squares(conv(exp(x), w, Tensor(), window)), {x}).stored)
    EXPECT_LE(elements_at_most(stored), 4 * 32 * 16 * 16) << to_string(shape_of(stored));
}

// Steps of all sums that the gradients are made of, of a loss that is made of a gradient.
double steps_of(const std::vector<UOp>& nodes) {
  double steps = 0;
  for (const UOp& u : topological(nodes))
    if (u.op() == Op::ReduceAxis) steps += elements_at_most(u.src(0));
  return steps;
}

// They are convolutions again: of what repeats sums are formed before it is moved, and nothing is
// stored for each filter and each place.
TEST_F(ProductsTest, GradientsOfGradientsOfConvolutionsStoreNothingLarge) {
  constexpr int64_t kBatch = 4, kChannels = 8, kFilters = 16, kSize = 12;
  for (const int64_t stride : {1, 2}) {
    for (const int64_t kernel : {2, 3, 4}) {
      const Tensor x = input({kBatch, kChannels, kSize, kSize});
      const Tensor w = input({kFilters, kChannels, kernel, kernel});
      Window window;
      window.strides = {stride, stride};
      const Tensor y = conv(x, w, Tensor(), window);
      const Tensor g = testing::float_input(context_, const_dims(y.shape()));
      const Tensor losses[] = {total(y * g)};
      const Tensor of_x = gradients(losses, {}, std::vector<Tensor>{x})[0];
      double most = 0;
      for (const UOp& u : schedule_of_gradients(total(of_x * x), {w, g}).stored)
        most = std::max(most, elements_at_most(u));
      EXPECT_LE(most, kBatch * kFilters * kSize * kSize)
          << kernel << " taps, strides of " << stride;
    }
  }
}

// Each window's element has one place there; that is not found among zeros.
TEST_F(ProductsTest, GradientsOfGradientsOfPoolsTakeNoMoreSteps) {
  const Tensor x = input({4, 8, 17, 17}), v = input({4, 8, 17, 17});
  Window window = Window{}.with_kernel({3, 3});
  window.strides = {2, 2};
  const Tensor y = avg_pool(exp(x), window);
  const Tensor losses[] = {total_of_squares(y)};
  const Tensor of_x = gradients(losses, {}, std::vector<Tensor>{x})[0];
  const double steps = steps_of(nodes_of_gradients(total(of_x * v), {x}));
  constexpr double kForward = 4.0 * 8 * 8 * 8 * 9;  // nine steps for each window
  EXPECT_LE(steps, 8 * kForward) << "forward, back, and both again";
}

// Slices that are all of a value stand beside each other; nothing is padded and added.
TEST_F(ProductsTest, SlicesOfAllAreConcatenated) {
  const Tensor x = input({4, 96}), w = input({96, 96});
  const Tensor y = matmul(x, w);
  const auto part = [&](int64_t i) { return slice_axis(y, 1, i * 32, (i + 1) * 32); };
  const Tensor all = total(exp(part(0)) * sin(part(2)) * tanh(part(1)));
  const auto concats = [&](const Tensor& loss) {
    return std::ranges::count_if(topological(nodes_of_gradients(loss, {w})),
                                 [](const UOp& u) { return u.op() == Op::Concat; });
  };
  EXPECT_EQ(concats(all), 1);
  EXPECT_EQ(concats(total(exp(part(0)) * sin(part(2)))), 0) << "a third is nobody's";
}

// A weight's gradient is no state of the loop that goes back, where what it is a product of takes
// less.
TEST_F(ProductsTest, OfWeightsOfLoopsAreAfterThem) {
  const auto states = [&](int64_t rows) {
    const Tensor x = input({12, rows, 16}), first = input({rows, 16}), w = input({16, 16});
    const Recurrence r{12, {{x, 0, false}}, {first}, {}};
    const RecurrenceResult made = recur(context_, r, [&](const RecurrenceStep& now) {
      const Tensor h = tanh(matmul(now.state[0], w) + now.inputs[0]);
      return RecurrenceResult{{h}, {h}};
    });
    size_t most = 0;
    for (const UOp& u : topological(nodes_of_gradients(total(made.outputs[0]), {w})))
      if (u.op() == Op::Scan) most = std::max(most, scan_part(u).loop->states);
    return most;
  };
  EXPECT_EQ(states(4), 1U) << "what reached the state before";
}

}  // namespace
}  // namespace tiny
