// Linear attention and causal convolutions against loops over plain numbers.
#include "tensor/linear_attention.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/context.h"
#include "tests/support/failure.h"
#include "tests/support/tensors.h"
#include "tests/tensor/arrays.h"

namespace tiny {
namespace {

using testing::Array;
using testing::expect_failure;
using testing::expect_near;
using testing::failure_of;
using testing::Floats;
using testing::floats;
using testing::floats_of;
using testing::generate;
using testing::spread_numbers;
using testing::tensor_of;

constexpr int64_t kBatch = 2, kSteps = 4, kHeads = 4, kGroups = 2, kSize = 3, kValueSize = 2;
constexpr double kScale = 60, kTolerance = 2e-6;

double& element(Array& a, const Ints& at) {
  int64_t flat = 0;
  for (size_t i = 0; i < a.shape.size(); ++i) flat = flat * a.shape[i] + at[i];
  return a.values[static_cast<size_t>(flat)];
}

struct Numbers {
  Array query = spread_numbers({kBatch, kSteps, kHeads, kSize}, 1, kScale);
  Array key = spread_numbers({kBatch, kSteps, kGroups, kSize}, 2, kScale);
  Array value = spread_numbers({kBatch, kSteps, kGroups, kValueSize}, 3, kScale);
  Array decay = spread_numbers({kBatch, kSteps, kGroups, kSize}, 4, kScale);
  Array beta = spread_numbers({kBatch, kSteps, 1, 1}, 5, kScale);
  Array state = spread_numbers({kBatch, kGroups, kSize, kValueSize}, 6, kScale);
};

struct Rule {
  bool decays, is_delta;
};

// One step of the state of batch b and group g.
void update(const Numbers& n, Rule rule, int64_t b, int64_t t, int64_t g, Array& state) {
  for (int64_t i = 0; rule.decays && i < kSize; ++i)
    for (int64_t v = 0; v < kValueSize; ++v)
      element(state, {b, g, i, v}) *= std::exp(n.decay.at({b, t, g, i}));
  for (int64_t v = 0; v < kValueSize; ++v) {
    double value = n.value.at({b, t, g, v});
    if (rule.is_delta) {
      for (int64_t i = 0; i < kSize; ++i) value -= state.at({b, g, i, v}) * n.key.at({b, t, g, i});
      value *= n.beta.at({b, t, 0, 0});
    }
    for (int64_t i = 0; i < kSize; ++i)
      element(state, {b, g, i, v}) += n.key.at({b, t, g, i}) * value;
  }
}

Array looped(const Numbers& n, Rule rule, double scale, Array& state) {
  Array y = generate({kBatch, kSteps, kHeads, kValueSize}, [](const Ints&) { return 0; });
  for (int64_t t = 0; t < kSteps; ++t) {
    for (int64_t b = 0; b < kBatch; ++b)
      for (int64_t g = 0; g < kGroups; ++g) update(n, rule, b, t, g, state);
    for (int64_t b = 0; b < kBatch; ++b)
      for (int64_t h = 0; h < kHeads; ++h)
        for (int64_t v = 0; v < kValueSize; ++v)
          for (int64_t i = 0; i < kSize; ++i)
            element(y, {b, t, h, v}) +=
                scale * n.query.at({b, t, h, i}) * state.at({b, h / (kHeads / kGroups), i, v});
  }
  return y;
}

TEST(LinearAttention, FollowsItsRules) {
  for (const char* device : {"cpu", "interp"})
    for (const Rule rule :
         {Rule{false, false}, Rule{true, false}, Rule{false, true}, Rule{true, true}}) {
      const Ref<Context> context = testing::new_context(device);
      const Numbers n;
      // [batch, steps, heads * size]
      const auto joined = [&](const Array& a) { return flatten(tensor_of(context, a), 2); };
      LinearAttentionOperands operands{kHeads,          kGroups,  joined(n.query), joined(n.key),
                                       joined(n.value), Tensor(), Tensor(),        Tensor()};
      if (rule.decays) operands.decay = joined(n.decay);
      if (rule.is_delta) operands.beta = joined(n.beta);
      Array zeros = generate(n.state.shape, [](const Ints&) { return 0; });
      const Array fresh = looped(n, rule, 1 / std::sqrt(3.0), zeros);
      expect_near(floats_of(linear_attention(operands).y), fresh, kTolerance);
      operands.state = tensor_of(context, n.state);
      Array state = n.state;
      const Array want = looped(n, rule, 0.75, state);
      const LinearAttention got = linear_attention(operands, 0.75);
      EXPECT_EQ(got.y.shape(), to_shape({kBatch, kSteps, kHeads * kValueSize}));
      expect_near(floats_of(got.y), want, kTolerance);
      expect_near(floats_of(got.state), state, kTolerance);
    }
}

TEST(CausalConvolution, LooksBackOnly) {
  constexpr int64_t kChannels = 2, kTaps = 3;
  const Array x = spread_numbers({kBatch, kChannels, kSteps}, 1, kScale);
  const Array weight = spread_numbers({kChannels, 1, kTaps}, 2, kScale);
  const Array past = spread_numbers({kBatch, kChannels, kTaps - 1}, 3, kScale);
  const Array bias = spread_numbers({kChannels}, 4, kScale);
  for (const char* device : {"cpu", "interp"})
    for (const bool has_past : {false, true}) {
      const Ref<Context> context = testing::new_context(device);
      const auto seen = [&](int64_t b, int64_t c, int64_t t) {
        if (t >= 0) return x.at({b, c, t});
        return has_past ? past.at({b, c, t + kTaps - 1}) : 0.0;
      };
      const Array want = generate(x.shape, [&](const Ints& at) {
        double sum = bias.at({at[1]});
        for (int64_t i = 0; i < kTaps; ++i)
          sum += weight.at({at[1], 0, i}) * seen(at[0], at[1], at[2] - (kTaps - 1) + i);
        return sum;
      });
      const CausalConvolution got = causal_convolution(
          tensor_of(context, x), tensor_of(context, weight), tensor_of(context, bias),
          has_past ? tensor_of(context, past) : Tensor());
      expect_near(floats_of(got.y), want, kTolerance);
      const Array last = generate(past.shape, [&](const Ints& at) {
        return seen(at[0], at[1], kSteps - (kTaps - 1) + at[2]);
      });
      expect_near(floats_of(got.state), last, kTolerance);
    }
}

TEST(LinearAttentionMistakes, AreNamed) {
  const Ref<Context> context = testing::new_context("interp");
  const auto of = [&](const Ints& shape) {
    return tensor_of(context, generate(shape, [](const Ints&) { return 0; }));
  };
  LinearAttentionOperands operands{4,        2,        of({1, 2, 12}), of({1, 2, 8}), of({1, 2, 6}),
                                   Tensor(), Tensor(), Tensor()};
  const auto failure = [&] { return failure_of([&] { linear_attention(operands); }); };
  expect_failure(failure(), Status::Shape, {"queries of 3", "keys of 4"});
  operands.key = of({1, 2, 5});
  expect_failure(failure(), Status::Shape, {"[1, 2, 5]", "2 heads"});
  operands.groups = 3;
  expect_failure(failure(), Status::InvalidArgument, {"4 query heads for 3 key heads"});
  expect_failure(
      failure_of([&] { causal_convolution(of({1, 2, 4}), of({3, 1, 2}), Tensor(), Tensor()); }),
      Status::Shape, {"[3, 1, 2]", "[1, 2, 4]"});
}

}  // namespace
}  // namespace tiny
