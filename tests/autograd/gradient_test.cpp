// Gradients are what differences of the loss say, for random shapes and windows.
#include "autograd/gradient.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "tensor/activation.h"
#include "tensor/alias.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/joining.h"
#include "tensor/loss.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/recurrence.h"
#include "tensor/reduce.h"
#include "tensor/scan.h"
#include "tensor/scatter.h"
#include "tensor/strides.h"
#include "tensor/value.h"
#include "tensor/window.h"
#include "tests/support/context.h"
#include "tests/support/random_kernels.h"
#include "tests/support/tensors.h"

namespace tiny {
namespace {

using testing::Choices;
using Function = std::function<Tensor(const std::vector<Tensor>&)>;

class GradientTest : public ::testing::Test, public testing::Choices {
 protected:
  GradientTest() : Choices(1), context_(testing::new_context("cpu")) {}

  struct Point {
    Ints shape;
    std::vector<double> values;
  };
  Point point(const Ints& shape, double low = -1, double high = 1) {
    int64_t count = 1;
    for (int64_t d : shape) count *= d;
    Point p{shape, {}};
    for (int64_t i = 0; i < count; ++i)
      p.values.push_back(low + (high - low) * static_cast<double>(below(1 << 20)) / (1 << 20));
    return p;
  }
  Tensor tensor(const Point& p) {
    return from_data(context_, kFloat64, p.shape, p.values.data(), std::ssize(p.values) * 8);
  }
  static std::vector<double> values(Tensor t) {
    std::vector<double> out(static_cast<size_t>(element_count(t)));
    read(t, out.data(), std::ssize(out) * 8);
    return out;
  }

  // Every element's slope of the sum of f, weighed, by central differences.
  void check(const Function& f, const std::vector<Point>& points, double tolerance = 1e-6) {
    std::vector<Tensor> inputs;
    for (const Point& p : points) inputs.push_back(tensor(p));
    const Tensor loss = f(inputs);
    const Point weights = point(const_dims(loss.shape()));
    const Tensor upstream = tensor(weights);
    const Tensor losses[] = {loss}, upstreams[] = {upstream};
    const std::vector<Tensor> slopes = gradients(losses, upstreams, inputs, true);
    const auto total = [&](const std::vector<Point>& at) {
      std::vector<Tensor> moved;
      for (const Point& p : at) moved.push_back(tensor(p));
      const std::vector<double> y = values(f(moved));
      double sum = 0;
      for (size_t i = 0; i < y.size(); ++i) sum += y[i] * weights.values[i];
      return sum;
    };
    constexpr double kStep = 1e-5;
    for (size_t k = 0; k < points.size(); ++k) {
      ASSERT_EQ(Shape(slopes[k].shape()), Shape(inputs[k].shape()));
      const std::vector<double> got = values(slopes[k]);
      for (size_t i = 0; i < got.size(); i += 1 + got.size() / 40) {
        std::vector<Point> low = points, high = points;
        low[k].values[i] -= kStep;
        high[k].values[i] += kStep;
        const double want = (total(high) - total(low)) / (2 * kStep);
        ASSERT_NEAR(got[i], want, tolerance * std::max(1.0, std::abs(want)))
            << "input " << k << ", element " << i;
      }
    }
  }

  Ref<Context> context_;
};

TEST_F(GradientTest, OfConvolutions) {
  for (int sample = 0; sample < 40; ++sample) {
    const int64_t spatial = 1 + below(2), groups = 1 + below(2);
    Window window;
    window.groups = groups;
    Ints x{1 + below(2), groups * (1 + below(3))}, w{groups * (1 + below(3)), x[1] / groups};
    for (int64_t i = 0; i < spatial; ++i) {
      const int64_t kernel = 1 + below(4), stride = 1 + below(3), dilation = 1 + below(2);
      window.strides.push_back(stride);
      window.dilations.push_back(dilation);
      window.before.push_back(below(3));
      window.after.push_back(below(3));
      w.push_back(kernel);
      x.push_back((kernel - 1) * dilation + 1 + below(6));
    }
    SCOPED_TRACE(sample);
    check([&](const auto& in) { return conv(in[0], in[1], Tensor(), window); },
          {point(x), point(w)});
  }
}

TEST_F(GradientTest, OfPools) {
  for (int sample = 0; sample < 30; ++sample) {
    Window window;
    Ints x{1 + below(2), 1 + below(2)};
    for (int64_t i = 0; i < 2; ++i) {
      const int64_t kernel = 1 + below(3);
      window.kernel.push_back(kernel);
      window.strides.push_back(1 + below(3));
      window.before.push_back(below(kernel));
      window.after.push_back(below(kernel));
      x.push_back(kernel + below(6));
    }
    SCOPED_TRACE(sample);
    check([&](const auto& in) { return avg_pool(in[0], window); }, {point(x)});
    check([&](const auto& in) { return max_pool(in[0], window); }, {point(x)});
  }
}

TEST_F(GradientTest, OfElementwise) {
  check([](const auto& in) { return in[0] * in[1] + in[0] / in[1] - exp(in[0]); },
        {point({3, 4}), point({4}, 1, 2)});
  check([](const auto& in) { return tanh(in[0]) * sin(in[0]) + cos(in[0]) * erf(in[0]); },
        {point({7})});
  check([](const auto& in) { return log(in[0]) * sqrt(in[0]) + pow(in[0], in[1]); },
        {point({5}, 0.5, 2), point({5})});
  check([](const auto& in) { return relu(in[0]) + abs(in[0]) + maximum(in[0], in[1]); },
        {point({9}), point({9})});
  check([](const auto& in) { return softmax(in[0], -1); }, {point({3, 5})});
}

// The kernel of this slope keeps values of a row in stages, one of which a value over other ranges
// reads that is found later.
TEST_F(GradientTest, OfSlopesOfSoftmaxBesideRunningSums) {
  const auto slope = [&](const std::vector<Tensor>& in) {
    const Tensor share = log_softmax(in[0], 0), sums = cumsum(in[0], 0);
    const Tensor losses[] = {
        sum(tanh(maximum(sums, share)) + tanh(sums) * in[1] + tanh(relu(share)), {0, 1})};
    return gradients(losses, {}, {in.data(), 1}, true)[0];
  };
  check(slope, {point({4, 3}), point({4, 3})});
}

// What reaches it is inf there: 0 times that would be NaN.
TEST_F(GradientTest, WhatIsNotTheExtremumGetsNothing) {
  const auto slopes = [&](const Function& f) {
    const Tensor x = tensor({{3}, {-1, 0, 4}}), loss = f({x});
    const Ints shape = const_dims(loss.shape());
    const std::vector<double> ones(static_cast<size_t>(element_count(loss)), 1);
    const Tensor losses[] = {loss}, upstreams[] = {tensor({shape, ones})};
    return values(gradients(losses, upstreams, {&x, 1}, true)[0]);
  };
  const Tensor zero = tensor({{1}, {0}}), four = tensor({{1}, {4}}), five = tensor({{1}, {5}});
  const auto root_of = [](const Tensor& y) { return sqrt(y); };
  EXPECT_EQ(slopes([&](const auto& in) { return root_of(relu(in[0])); }),
            (std::vector<double>{0, 0, 0.25}));
  EXPECT_EQ(slopes([&](const auto& in) { return log(relu(in[0])); }),
            (std::vector<double>{0, 0, 0.25}));
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(slopes([&](const auto& in) { return root_of(maximum(in[0], zero)); }),
            (std::vector<double>{0, inf, 0.25}));
  EXPECT_EQ(slopes([&](const auto& in) { return root_of(neg(minimum(neg(in[0]), zero))); }),
            (std::vector<double>{0, inf, 0.25}));
  EXPECT_EQ(slopes([&](const auto& in) { return root_of(clip(in[0], zero, five)); }),
            (std::vector<double>{0, inf, 0.25}));
  EXPECT_EQ(slopes([&](const auto& in) { return root_of(max(in[0] - four, {0})); }),
            (std::vector<double>{0, 0, inf}));
  EXPECT_EQ(slopes([&](const auto& in) { return sqrt(sqrt(relu(in[0]))); })[0], 0);
}

TEST_F(GradientTest, OfReductions) {
  check([](const auto& in) { return mean(in[0] * in[0], {1}); }, {point({3, 4, 2})});
  check([](const auto& in) { return max(in[0], {0}) * min(in[0], {0}); }, {point({5, 3})});
  check([](const auto& in) { return prod(in[0], {1}); }, {point({3, 4})});
  check([](const auto& in) { return matmul(in[0], in[1]); }, {point({2, 3, 4}), point({4, 5})});
}

TEST_F(GradientTest, OfMovement) {
  check([](const auto& in) { return slice(permute(in[0], {1, 0}), {1, 0}, {3, 5}, {1, 2}); },
        {point({5, 4})});
  check([](const auto& in) { return pad(flip(in[0], {0}), {1, 0}, {0, 2}, 3); }, {point({3, 2})});
  check([](const auto& in) { return as_strided(in[0] * in[0], {3, 3}, {2, 1}, 1); }, {point({9})});
}

// Slices that are all of a value, more than that, and less; of slices, and along two axes.
TEST_F(GradientTest, OfSlices) {
  const auto part = [](const Tensor& x, int64_t axis, int64_t from, int64_t to) {
    return slice_axis(x, axis, from, to);
  };
  check([&](const auto& in) { return sin(part(in[0], 1, 0, 2)) * part(in[0], 1, 2, 4); },
        {point({3, 4})});
  check([&](const auto& in) { return sin(part(in[0], 0, 0, 3)) * part(in[0], 0, 1, 4); },
        {point({4, 2})});
  check([&](const auto& in) { return sin(part(in[0], 0, 0, 1)) * part(in[0], 0, 2, 3); },
        {point({4, 2})});
  check(
      [&](const auto& in) {
        const Tensor half = part(in[0], 0, 0, 2), rest = part(in[0], 0, 2, 4);
        const Tensor quarter = part(half, 1, 0, 2) * part(half, 1, 2, 4);
        return quarter * part(rest, 1, 1, 3);
      },
      {point({4, 4})});
  check(
      [&](const auto& in) {
        const Tensor across = part(in[0], 1, 0, 2) * exp(part(in[0], 1, 2, 4));
        return part(in[0], 0, 0, 2) * part(in[0], 0, 2, 4) * permute(across, {1, 0});
      },
      {point({4, 4})});
}

TEST_F(GradientTest, OfIndexing) {
  const int64_t rows[] = {2, 0, 2, 1}, flat[] = {3, 1, 3, 0, 2, 2};
  const Tensor index = from_data(context_, kInt64, {4}, rows, 32);
  const Tensor along = from_data(context_, kInt64, {2, 3}, flat, 48);
  check([&](const auto& in) { return gather(in[0], index, 0); }, {point({3, 5})});
  check([&](const auto& in) { return take_along_axis(in[0], along, 1); }, {point({2, 4})});
  for (const Fold fold : {Fold::None, Fold::Add, Fold::Mul, Fold::Max, Fold::Min}) {
    SCOPED_TRACE(static_cast<int>(fold));
    check([&](const auto& in) { return scatter_elements(in[0], along, in[1], 1, fold); },
          {point({2, 4}), point({2, 3})});
  }
  check([](const auto& in) { return concat(std::vector<Tensor>{in[0], in[1] * in[1]}, 1); },
        {point({2, 3}), point({2, 2})});
}

// A recurrence: inputs, a state that is an output and one that is not, weights of all steps.
TEST_F(GradientTest, OfRecurrences) {
  for (const bool reverse : {false, true})
    for (const bool shown : {false, true}) {
      const auto cell = [&](const std::vector<Tensor>& in) {
        const Recurrence r{5, {{in[0], 0, reverse}}, {in[1], in[1]}, {reverse}};
        const RecurrenceResult made = recur(context_, r, [&](const RecurrenceStep& now) {
          const Tensor h = tanh(matmul(now.state[0], in[2]) + now.inputs[0]);
          const Tensor c = now.state[1] * sin(h) + in[3];
          return RecurrenceResult{{shown ? h : h * c}, {h, c}};
        });
        return made.outputs[0] * made.state[1];
      };
      check(cell, {point({5, 2, 3}), point({2, 3}), point({3, 3}), point({3})});
    }
}

// States that begin with numbers: what steps make of them changes all the same, one state by
// another and by steps before.
TEST_F(GradientTest, OfStatesThatBeginWithNumbers) {
  for (const bool last : {false, true}) {
    const auto cell = [&](const std::vector<Tensor>& in) {
      const Tensor zeros = full(context_, kFloat64, {2, 3}, 0);
      const Recurrence r{4, {{in[0], 0, false}}, {zeros, zeros, zeros}, {}};
      const RecurrenceResult made = recur(context_, r, [&](const RecurrenceStep& now) {
        const Tensor a = tanh(matmul(now.state[0], in[1]) + now.inputs[0]);
        const Tensor b = now.state[1] * in[2] + now.state[0];
        return RecurrenceResult{{a}, {a, b, now.state[1] + now.state[2]}};
      });
      return last ? made.state[2] : made.outputs[0];
    };
    std::vector<Point> points{point({4, 2, 3}), point({3, 3}), point({3})};
    check(cell, points);
  }
}

// The last value of such a state is the last step's: of what that sees, of weights alone, of the
// other state; beside an output that is the same value, and without.
TEST_F(GradientTest, OfStatesThatNoStepReads) {
  for (const bool reverse : {false, true})
    for (const bool shown : {false, true}) {
      const auto cell = [&](const std::vector<Tensor>& in) {
        const Recurrence r{4, {{in[0], 0, reverse}}, {in[1], in[1], in[1]}, {reverse}};
        const RecurrenceResult made = recur(context_, r, [&](const RecurrenceStep& now) {
          const Tensor a = tanh(now.state[0] * in[2] + now.inputs[0]);
          const Tensor b = sin(now.inputs[0]) * in[2] + now.state[0];
          return RecurrenceResult{{shown ? b : a}, {a, b, in[1] * in[2]}};
        });
        const Tensor last = made.state[1] * made.state[2];
        return shown ? made.outputs[0] * last : last;
      };
      check(cell, {point({4, 2, 3}), point({2, 3}), point({3})});
    }
}

// No step reads anything but its input.
TEST_F(GradientTest, OfTheLastOfASequence) {
  const auto last = [&](const std::vector<Tensor>& in) {
    const Recurrence r{4, {{in[0], 0, false}}, {in[1]}, {}};
    return recur(context_, r,
                 [&](const RecurrenceStep& now) {
                   return RecurrenceResult{{}, {now.inputs[0] * in[1]}};
                 })
        .state[0];
  };
  check(last, {point({4, 3}), point({3})});
}

// The second loop reads the weights in two forms, of which one is made of the other.
TEST_F(GradientTest, OfGradientsOfRecurrences) {
  check(
      [&](const auto& in) {
        const Recurrence r{3, {{in[0], 0, false}}, {full(context_, kFloat64, {2, 2}, 0)}, {}};
        const RecurrenceResult made = recur(context_, r, [&](const RecurrenceStep& now) {
          const Tensor h = tanh(matmul(now.state[0], in[1]) + now.inputs[0]);
          return RecurrenceResult{{h}, {h}};
        });
        const Tensor losses[] = {made.outputs[0]}, ups[] = {in[0]}, by[] = {in[1]};
        return gradients(losses, ups, by)[0];
      },
      {point({3, 2, 2}), point({2, 2}), point({2})});
}

// Where an exponential is infinite or a probability 0, what is made of it still has a slope.
TEST_F(GradientTest, OfWhatIsSaturated) {
  const auto slopes = [&](const Tensor& x, const Tensor& y) {
    const Tensor losses[] = {sum(y, {0})}, by[] = {x};
    return testing::floats_of(gradients(losses, {}, by)[0]);
  };
  const Tensor x = testing::floats(context_, {-200, -89, 0, 200}, {4});
  const testing::Floats of_sigmoid = slopes(x, sigmoid(x));
  EXPECT_EQ(of_sigmoid[0], 0);
  EXPECT_NEAR(of_sigmoid[1], 0, 1e-37);
  EXPECT_EQ(of_sigmoid[2], 0.25F);
  EXPECT_EQ(of_sigmoid[3], 0);
  const Tensor p = testing::floats(context_, {0, 1, 0, 1}, {4});
  const Tensor target = testing::floats(context_, {0, 1, 1, 0}, {4});
  for (const float slope : slopes(p, binary_cross_entropy(p, target, LossReduction::None)))
    EXPECT_TRUE(std::isfinite(slope)) << slope;
  EXPECT_EQ(testing::floats_of(binary_cross_entropy(p, target, LossReduction::None)),
            (testing::Floats{0, 0, 100, 100}));
}

// A write to a view: what was there before has no part in what was written.
TEST_F(GradientTest, OfWrites) {
  check(
      [](const auto& in) {
        Tensor x = in[0] * in[0];
        Tensor part = slice(x, {1, 0}, {3, 4}, {1, 2});
        assign(part, in[1] * in[1]);
        return x * x;
      },
      {point({4, 4}), point({2, 2})});
}

TEST_F(GradientTest, OfGradients) {
  check(
      [](const auto& in) {
        const Tensor y = in[0] * in[0] * in[0] * in[1];
        const Tensor losses[] = {y}, ups[] = {in[1]}, by[] = {in[0]};
        return gradients(losses, ups, by)[0];
      },
      {point({4}), point({4})});
}

// A tensor that was computed since the loss was built of it is the same target, in any order of its
// elements.
TEST_F(GradientTest, ByWhatWasComputedMeanwhile) {
  const Tensor x = tensor(point({2, 3}));
  Tensor y = x * x, z = exp(x);
  const Tensor losses[] = {sum(y * y, {0, 1}) + sum(z * z, {0, 1})};
  const std::vector<Tensor> by{x, y, z};
  std::vector<std::vector<double>> want;
  for (const Tensor& slope : gradients(losses, {}, by)) want.push_back(values(slope));
  Tensor* both[] = {&y, &z};
  realize(both);
  const std::vector<Tensor> again{x, y, permute(z, {1, 0})};
  const std::vector<Tensor> slopes = gradients(losses, {}, again);
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(values(slopes[i]), want[i]) << i;
  EXPECT_EQ(values(permute(slopes[2], {1, 0})), want[2]);
  const std::vector<Tensor> others{x, tensor(point({1})), y, detach(x)};
  EXPECT_EQ(made_of(losses[0], others), (std::vector<int64_t>{0, 2}));
  EXPECT_EQ(made_of(detach(y) + y, {{y}}), (std::vector<int64_t>{0}));
}

// Also where the elements lie in another order than those that the losses are made of.
TEST_F(GradientTest, ByWhatWasComputedInAnotherOrder) {
  const Tensor x = tensor(point({2, 3, 4}));
  Tensor turned = permute(exp(x), {2, 0, 1}), flipped = flip(exp(x), {1});
  const Tensor losses[] = {sum(turned * turned, {0, 1, 2}) + sum(flipped * flipped, {0, 1, 2})};
  const std::vector<Tensor> by{turned, flipped};
  std::vector<std::vector<double>> want;
  for (const Tensor& slope : gradients(losses, {}, by)) want.push_back(values(slope));
  Tensor* both[] = {&turned, &flipped};
  realize(both);
  const std::vector<Tensor> again{turned, flipped};
  EXPECT_EQ(made_of(losses[0], again), (std::vector<int64_t>{0, 1}));
  const std::vector<Tensor> slopes = gradients(losses, {}, again);
  for (size_t i = 0; i < slopes.size(); ++i) EXPECT_EQ(values(slopes[i]), want[i]) << i;
}

// Equal constants, and a value beside its clone, are targets of their own.
TEST_F(GradientTest, ByClones) {
  const Tensor one = full(context_, kFloat64, {3}, 1);
  const Tensor a = clone(one), b = clone(one), c = clone(a);
  const Tensor losses[] = {sum(a * a * b + c, {0})};
  const std::vector<Tensor> slopes = gradients(losses, {}, std::vector<Tensor>{a, b, c});
  EXPECT_EQ(values(slopes[0]), (std::vector<double>{3, 3, 3}));
  EXPECT_EQ(values(slopes[1]), (std::vector<double>{1, 1, 1}));
  EXPECT_EQ(values(slopes[2]), (std::vector<double>{1, 1, 1}));
}

// A gradient of classes is made where it is added up: nothing is scattered into zeros.
TEST_F(GradientTest, OfTheLikelihoodOfClassesIsNoScatter) {
  const Ref<Context> context = testing::new_context("cpu");
  const Tensor x = testing::floats(context, {-1, -2, -3, -4, -5, -6}, {2, 3});
  const int64_t classes[] = {2, 0};
  const Tensor loss = nll_loss(x, from_data(context, kInt64, {2}, classes, 16));
  const Tensor slope = gradients({&loss, 1}, {}, {&x, 1}).front();
  for (const UOp& u : topological({&slope.node(), 1})) EXPECT_NE(u.op(), Op::Scatter);
  EXPECT_EQ(testing::floats_of(slope), (testing::Floats{0, 0, -0.5, -0.5, 0, 0}));
}

}  // namespace
}  // namespace tiny
