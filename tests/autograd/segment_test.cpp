// Gradients that stop at a value, or compute it again: the same numbers, with less memory.
#include <gtest/gtest.h>

#include "autograd/gradient.h"
#include "base/error.h"
#include "tensor/alias.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/matmul.h"
#include "tensor/program.h"
#include "tensor/random.h"
#include "tensor/reduce.h"
#include "tensor/run.h"
#include "tests/support/context.h"
#include "tests/support/tensors.h"

namespace tiny {
namespace {

using testing::Floats;

class Segments : public ::testing::TestWithParam<std::string> {
 protected:
  Tensor make(const Ints& shape, int64_t first = 0) {
    Floats out;
    for (int64_t i = 0; i < product(to_shape(shape)).value(); ++i)
      out.push_back(static_cast<float>((7 * i + first) % 23 - 11) / 40);
    return testing::floats(context_, out, shape);
  }
  static Floats get(const Tensor& t) { return testing::floats_of(t); }
  std::vector<Tensor> slopes(const Tensor& y, const std::vector<Tensor>& by) {
    const Tensor losses[] = {sum(y, every_axis(y.rank()))};
    return gradients(losses, {}, by);
  }
  Floats slope(const Tensor& y, const Tensor& by) { return get(slopes(y, {by})[0]); }

  // A deep network with steps that keep much: how it is cut, and what its gradients are.
  enum class Cut { None, EveryLayer, FromKept };
  static constexpr int64_t kLayers = 12, kWidth = 32, kRows = 256;
  struct Network {
    Tensor loss;
    std::vector<Tensor> weights;
  };
  Network network(Cut cut) {
    Network out;
    Tensor x = make({kRows, kWidth});
    for (int64_t i = 0; i < kLayers; ++i) {
      const Tensor kept[] = {x};
      const Tensor wide = make({kWidth, 4 * kWidth}, i), narrow = make({4 * kWidth, kWidth}, 3 * i);
      const Tensor h = sin(matmul(x, wide));
      x = x + matmul(h * exp(h) + tanh(h), narrow) * number(x, 0.25);
      out.weights.push_back(wide);
      out.weights.push_back(narrow);
      if (cut == Cut::EveryLayer) x = recompute(x);
      if (cut == Cut::FromKept && i % 2 == 1) x = recompute(x, kept);
    }
    out.loss = sum(x * x, {0, 1});
    return out;
  }
  struct Made {
    std::vector<Floats> slopes;
    int64_t arena = 0;
  };
  Made gradients_of(Cut cut) {
    const Network net = network(cut);
    const Tensor losses[] = {net.loss};
    std::vector<Tensor> outputs = gradients(losses, {}, net.weights);
    outputs.push_back(net.loss);
    const auto run = make_ref<TensorRun>(context_, compile_tensors(context_, {}, outputs));
    run->execute();
    Made out;
    out.arena = run->program().compiled.program->arena_bytes;
    for (size_t i = 0; i < outputs.size(); ++i) {
      Floats& values = out.slopes.emplace_back(static_cast<size_t>(element_count(outputs[i])));
      run->read_output(i, values.data());
    }
    return out;
  }

  Ref<Context> context_ = testing::new_context(GetParam());
};

INSTANTIATE_TEST_SUITE_P(Devices, Segments, ::testing::Values("interp", "cpu"),
                         [](const auto& info) { return info.param; });

TEST_P(Segments, ADetachedValueIsTheValueAndHasNoSlope) {
  const Tensor x = make({5});
  EXPECT_EQ(get(detach(x)), get(x));
  EXPECT_EQ(slope(x * detach(x), x), get(x));
  const Tensor apart = detach(x * x);
  EXPECT_EQ(slope(apart * x, apart), get(x));
  const Tensor losses[] = {sum(detach(x) * detach(x), {0})}, by[] = {x};
  EXPECT_THROW(gradients(losses, {}, by), Error);
  EXPECT_EQ(get(gradients(losses, {}, by, true)[0]), Floats(5));
}

TEST_P(Segments, AValueComputedAgainHasItsSlopes) {
  const Tensor x = make({4, 6}), w = make({6, 6}, 5);
  const auto f = [&](bool again) {
    const auto mark = [&](const Tensor& t) { return again ? recompute(t) : t; };
    Tensor h = mark(tanh(matmul(x, w)));
    h = mark(sin(matmul(h, w)) * h);
    return h * h;
  };
  EXPECT_EQ(get(f(true)), get(f(false)));
  for (const Tensor& by : {x, w}) {
    const Floats want = slope(f(false), by), got = slope(f(true), by);
    for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-6) << i;
  }
  // And the slopes of slopes.
  const auto second = [&](bool again) {
    const Tensor first = slopes(f(again), {w})[0];
    return slope(first * first, w);
  };
  const Floats want = second(false), got = second(true);
  for (size_t i = 0; i < want.size(); ++i)
    ASSERT_NEAR(got[i], want[i], 1e-5 * std::max(1.F, std::abs(want[i]))) << i;
}

// By values inside and outside of the segment, and of memory alone.
TEST_P(Segments, SlopesByWhatASegmentIsMadeOf) {
  const Tensor x = make({6}), a = x * x;
  const Tensor b = sin(a), y = recompute(b * a);
  const auto plain = [&](const Tensor& by) { return slope(b * a, by); };
  const auto again = [&](const Tensor& by) { return slope(y, by); };
  for (const Tensor& by : {x, a, b}) {
    const Floats want = plain(by), got = again(by);
    for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-6) << i;
  }
  EXPECT_EQ(slope(recompute(x), x), Floats(6, 1));
  EXPECT_EQ(slope(recompute(recompute(x) * x), x), get(x + x));
  // What is read beside it, too, has both slopes.
  EXPECT_EQ(slope(recompute(a) + a, x), get(number(x, 4) * x));
}

TEST_P(Segments, MasksAreDrawnAgainFromTheirKey) {
  const Tensor key = random_key(context_, 3), x = make({64});
  const Tensor mask = random_bernoulli(key, full(context_, kFloat32, {64}, 0.5));
  const Tensor y = where(mask, x * x, number(x, 0));
  EXPECT_EQ(slope(recompute(y), x), slope(y, x));
}

TEST_P(Segments, ASegmentsValuesAreNotKept) {
  const Made kept = gradients_of(Cut::None), layers = gradients_of(Cut::EveryLayer),
             pairs = gradients_of(Cut::FromKept);
  for (const Made* made : {&layers, &pairs})
    for (size_t k = 0; k < kept.slopes.size(); ++k)
      for (size_t i = 0; i < kept.slopes[k].size(); ++i)
        ASSERT_NEAR(made->slopes[k][i], kept.slopes[k][i],
                    1e-4 * std::max(1.F, std::abs(kept.slopes[k][i])))
            << k << ", " << i;
  // The wide values of all layers against those of one, or two.
  EXPECT_LT(layers.arena, kept.arena / 2);
  EXPECT_LT(pairs.arena, kept.arena * 2 / 3);
}

}  // namespace
}  // namespace tiny
