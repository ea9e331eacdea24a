// Recurrent layers against loops over plain numbers.
#include "tensor/recurrent.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>

#include "tensor/elementwise.h"
#include "tests/support/context.h"
#include "tests/support/failure.h"
#include "tests/support/tensors.h"

namespace tiny {
namespace {

using testing::expect_failure;
using testing::failure_of;
using testing::Floats;
using testing::floats;
using testing::floats_of;

constexpr int64_t kSteps = 4, kBatch = 2, kInput = 3, kHidden = 2;

// Numbers between -0.8 and 0.8 without a pattern.
Floats numbers(int64_t count, int64_t seed) {
  Floats out;
  for (int64_t i = 0; i < count; ++i)
    out.push_back(static_cast<float>((i * 37 + seed * 53) % 101 - 50) / 62);
  return out;
}

double sigmoid_of(double x) {
  return 1 / (1 + std::exp(-x));
}

struct Numbers {
  explicit Numbers(int64_t gates)
      : x(numbers(kSteps * kBatch * kInput, 1)),
        w(numbers(gates * kHidden * kInput, 2)),
        r(numbers(gates * kHidden * kHidden, 3)),
        wb(numbers(gates * kHidden, 4)),
        rb(numbers(gates * kHidden, 5)),
        p(numbers(3 * kHidden, 6)),
        h(numbers(kBatch * kHidden, 7)),
        c(numbers(kBatch * kHidden, 8)) {}
  Floats x, w, r, wb, rb, p, h, c;

  // Of gate g and element j: the input's part at step t, and the part of a state.
  double of_input(int64_t t, int64_t b, int64_t g, int64_t j) const {
    double sum = wb.at(static_cast<size_t>(g * kHidden + j));
    for (int64_t i = 0; i < kInput; ++i)
      sum += double{x[static_cast<size_t>((t * kBatch + b) * kInput + i)]} *
             double{w[static_cast<size_t>((g * kHidden + j) * kInput + i)]};
    return sum;
  }
  double of_state(const std::vector<double>& state, int64_t g, int64_t j) const {
    double sum = rb.at(static_cast<size_t>(g * kHidden + j));
    for (int64_t i = 0; i < kHidden; ++i)
      sum += state[static_cast<size_t>(i)] *
             double{r[static_cast<size_t>((g * kHidden + j) * kHidden + i)]};
    return sum;
  }
};

struct Expected {
  Floats y = Floats(kSteps * kBatch * kHidden);
  Floats h, c;
};

// One step of one sequence: h and c become new ones.
using Step =
    std::function<void(int64_t t, int64_t b, std::vector<double>& h, std::vector<double>& c)>;

Expected looped(const Numbers& n, const Step& step, bool reverse, const Ints& lengths) {
  Expected out;
  for (int64_t b = 0; b < kBatch; ++b) {
    const auto first = static_cast<size_t>(b * kHidden);
    std::vector<double> h(n.h.begin() + b * kHidden, n.h.begin() + (b + 1) * kHidden);
    std::vector<double> c(n.c.begin() + b * kHidden, n.c.begin() + (b + 1) * kHidden);
    for (int64_t k = 0; k < kSteps; ++k) {
      const int64_t t = reverse ? kSteps - 1 - k : k;
      if (!lengths.empty() && t >= lengths[static_cast<size_t>(b)]) continue;
      step(t, b, h, c);
      for (size_t j = 0; j < kHidden; ++j)
        out.y[static_cast<size_t>(t * kBatch * kHidden) + first + j] = static_cast<float>(h[j]);
    }
    out.h.insert(out.h.end(), h.begin(), h.end());
    out.c.insert(out.c.end(), c.begin(), c.end());
  }
  return out;
}

void expect_near(const Floats& got, const Floats& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 2e-6) << "element " << i;
}

class Recurrent : public ::testing::TestWithParam<std::string> {
 protected:
  RecurrentWeights weights(const Numbers& n, int64_t gates) const {
    return {floats(context_, n.w, {gates * kHidden, kInput}),
            floats(context_, n.r, {gates * kHidden, kHidden}), floats(context_, n.wb),
            floats(context_, n.rb), Tensor()};
  }
  Tensor input(const Numbers& n) const { return floats(context_, n.x, {kSteps, kBatch, kInput}); }
  RecurrentState state(const Numbers& n) const {
    return {floats(context_, n.h, {kBatch, kHidden}), floats(context_, n.c, {kBatch, kHidden})};
  }
  Tensor ints(const Ints& values) const {
    return from_data(context_, kInt64, {std::ssize(values)}, values.data(), std::ssize(values) * 8);
  }
  Ref<Context> context_ = testing::new_context(GetParam());
};

INSTANTIATE_TEST_SUITE_P(Devices, Recurrent, ::testing::Values("cpu", "interp"));

TEST_P(Recurrent, ElmanCells) {
  const Numbers n(1);
  const Expected want = looped(
      n,
      [&](int64_t t, int64_t b, std::vector<double>& h, std::vector<double>&) {
        const std::vector<double> before = h;
        for (int64_t j = 0; j < kHidden; ++j)
          h[static_cast<size_t>(j)] = std::tanh(n.of_input(t, b, 0, j) + n.of_state(before, 0, j));
      },
      true, {});
  const RecurrentLayer got =
      recurrent_layer(RecurrentKind::Rnn, input(n), state(n), weights(n, 1), {}, true);
  expect_near(floats_of(got.y), want.y);
  expect_near(floats_of(got.last.h), want.h);
  EXPECT_FALSE(got.last.c);
}

// Gates r, z, n as PyTorch has them, or in ONNX's order z, r, n.
TEST_P(Recurrent, GatedUnits) {
  const Numbers n(3);
  for (const GateOrder order : {GateOrder::PyTorch, GateOrder::Onnx})
    for (const bool before_reset : {true, false}) {
      const int64_t at_r = order == GateOrder::Onnx ? 1 : 0;
      const Expected want = looped(
          n,
          [&](int64_t t, int64_t b, std::vector<double>& h, std::vector<double>&) {
            std::vector<double> r, z, gated;
            const std::vector<double> s = h;
            for (int64_t j = 0; j < kHidden; ++j) {
              r.push_back(sigmoid_of(n.of_input(t, b, at_r, j) + n.of_state(s, at_r, j)));
              z.push_back(sigmoid_of(n.of_input(t, b, 1 - at_r, j) + n.of_state(s, 1 - at_r, j)));
              gated.push_back(r.back() * s[static_cast<size_t>(j)]);
            }
            for (size_t j = 0; j < kHidden; ++j) {
              const auto i = static_cast<int64_t>(j);
              const double seen =
                  before_reset ? r[j] * n.of_state(s, 2, i) : n.of_state(gated, 2, i);
              h[j] = (1 - z[j]) * std::tanh(n.of_input(t, b, 2, i) + seen) + z[j] * s[j];
            }
          },
          false, {});
      RecurrentOptions options;
      options.order = order;
      options.linear_before_reset = before_reset;
      const RecurrentLayer got =
          recurrent_layer(RecurrentKind::Gru, input(n), state(n), weights(n, 3), options);
      expect_near(floats_of(got.y), want.y);
      expect_near(floats_of(got.last.h), want.h);
    }
}

struct LongShortTerm {
  bool is_onnx = false;
  bool input_forget = false;
  bool with_peephole = false;
  double clip = 1e9;
};

void lstm_step(const Numbers& n, const LongShortTerm& kind, int64_t t, int64_t b,
               std::vector<double>& h, std::vector<double>& c) {
  const std::vector<double> s = h;
  const int64_t out = kind.is_onnx ? 1 : 3, forget = kind.is_onnx ? 2 : 1;
  const int64_t fresh = kind.is_onnx ? 3 : 2;
  for (size_t j = 0; j < kHidden; ++j) {
    const auto i = static_cast<int64_t>(j);
    const auto sum = [&](int64_t gate, size_t peephole, double cell) {
      const double p = kind.with_peephole ? double{n.p[peephole * kHidden + j]} * cell : 0;
      return std::clamp(n.of_input(t, b, gate, i) + n.of_state(s, gate, i) + p, -kind.clip,
                        kind.clip);
    };
    const double in = sigmoid_of(sum(0, 0, c[j]));
    const double kept = kind.input_forget ? 1 - in : sigmoid_of(sum(forget, 2, c[j]));
    c[j] = kept * c[j] + in * std::tanh(sum(fresh, 0, 0));
    h[j] = sigmoid_of(sum(out, 1, c[j])) * std::tanh(c[j]);
  }
}

TEST_P(Recurrent, LongShortTermMemory) {
  const Numbers n(4);
  for (const LongShortTerm& kind : {LongShortTerm{}, LongShortTerm{true, false, true, 1e9},
                                    LongShortTerm{true, true, false, 0.25}}) {
    const Ints lengths = kind.is_onnx ? Ints{4, 2} : Ints{};
    const Expected want =
        looped(n, [&](auto&&... step) { lstm_step(n, kind, step...); }, kind.is_onnx, lengths);
    RecurrentOptions options;
    options.order = kind.is_onnx ? GateOrder::Onnx : GateOrder::PyTorch;
    options.input_forget = kind.input_forget;
    if (kind.clip < 1e9) options.clip = kind.clip;
    RecurrentWeights w = weights(n, 4);
    if (kind.with_peephole) w.peephole = floats(context_, n.p);
    const RecurrentLayer got =
        recurrent_layer(RecurrentKind::Lstm, input(n), state(n), w, options, kind.is_onnx,
                        lengths.empty() ? Tensor() : ints(lengths));
    expect_near(floats_of(got.y), want.y);
    expect_near(floats_of(got.last.h), want.h);
    expect_near(floats_of(got.last.c), want.c);
  }
}

TEST_P(Recurrent, ALayerIsItsStepsOneAfterTheOther) {
  const Numbers n(4);
  const RecurrentKind kind = RecurrentKind::Lstm;
  const Tensor x = input(n);
  RecurrentState s = initial_state(kind, x, kBatch, kHidden);
  const RecurrentLayer layer = recurrent_layer(kind, x, s, weights(n, 4));
  for (int64_t t = 0; t < kSteps; ++t)
    s = recurrent_layer(kind, slice_axis(x, 0, t, t + 1), s, weights(n, 4)).last;
  expect_near(floats_of(layer.last.h), floats_of(s.h));
  expect_near(floats_of(layer.last.c), floats_of(s.c));
}

// Of bfloat16: with an input that goes through one-hot weights and none of the state, gates are the
// input's elements.
TEST_P(Recurrent, CellsOf16BitsRoundOnceAStep) {
  const auto round = [](double x) {
    return std::bit_cast<float>((std::bit_cast<uint32_t>(static_cast<float>(x)) + 0x7FFF +
                                 (std::bit_cast<uint32_t>(static_cast<float>(x)) >> 16 & 1)) &
                                0xFFFF0000);
  };
  Floats given;
  for (const float v : numbers(64 * 4, 3)) given.push_back(round(v));
  const auto narrow = [&](const Floats& values, const Ints& shape) {
    return cast(floats(context_, values, shape), kBFloat16);
  };
  Floats eye(16);
  for (size_t i = 0; i < 4; ++i) eye[i * 5] = 1;
  RecurrentWeights w;
  w.input = narrow(eye, {4, 4});
  w.hidden = narrow(Floats(4), {4, 1});
  const Tensor x = narrow(given, {1, 64, 4});
  RecurrentOptions options;
  options.order = GateOrder::PyTorch;
  const RecurrentState state = initial_state(RecurrentKind::Lstm, x, 64, 1);
  const RecurrentLayer out =
      recurrent_layer(RecurrentKind::Lstm, x, state, w, options, false, Tensor());
  const Floats got = floats_of(cast(out.y, kFloat32));
  for (size_t row = 0; row < 64; ++row) {
    const float* gates = &given[row * 4];
    const double c = sigmoid_of(gates[0]) * std::tanh(gates[2]);
    EXPECT_EQ(got[row], round(sigmoid_of(gates[3]) * std::tanh(c))) << row;
  }
}

TEST(GateActivation, HasOnnxNamesAndNumbers) {
  const Ref<Context> context = testing::new_context("interp");
  const Floats at = {-2.f, -0.5f, 0.f, 0.75f, 3.f};
  struct Case {
    const char* name;
    double (*want)(double);
  };
  for (const Case& c : {
           Case{"Relu", [](double x) { return std::max(x, 0.0); }},
           Case{"Tanh", [](double x) { return std::tanh(x); }},
           Case{"Sigmoid", [](double x) { return sigmoid_of(x); }},
           Case{"Softsign", [](double x) { return x / (1 + std::fabs(x)); }},
           Case{"Softplus", [](double x) { return std::log1p(std::exp(x)); }},
           Case{"Affine", [](double x) { return x; }},
           Case{"LeakyRelu", [](double x) { return x < 0 ? 0.01 * x : x; }},
           Case{"ThresholdedRelu", [](double x) { return x < 1 ? 0.0 : x; }},
           Case{"ScaledTanh", [](double x) { return std::tanh(x); }},
           Case{"HardSigmoid", [](double x) { return std::clamp(0.2 * x + 0.5, 0.0, 1.0); }},
           Case{"Elu", [](double x) { return x < 0 ? std::expm1(x) : x; }},
       }) {
    const std::optional<GateActivation> f = find_gate_activation(c.name);
    ASSERT_TRUE(f) << c.name;
    const Floats got = floats_of(f->function(floats(context, at), f->alpha, f->beta));
    for (size_t i = 0; i < at.size(); ++i)
      EXPECT_NEAR(got[i], c.want(double{at[i]}), 1e-6) << c.name << " of " << at[i];
  }
  EXPECT_FALSE(find_gate_activation("gelu"));
}

TEST(RecurrentMistakes, AreNamed) {
  const Ref<Context> context = testing::new_context("interp");
  const RecurrentKind kind = RecurrentKind::Gru;
  const Tensor x = floats(context, Floats(6, 0), {1, 2, 3});
  const RecurrentState start = initial_state(kind, x, 2, 2);
  RecurrentWeights w{floats(context, Floats(18, 0), {6, 3}), floats(context, Floats(12, 0), {6, 2}),
                     Tensor(), Tensor(), Tensor()};
  const auto layer = [&](const Tensor& input, const RecurrentOptions& options = {}) {
    return failure_of([&] { recurrent_layer(kind, input, start, w, options); });
  };
  expect_failure(layer(squeeze(x)), Status::Shape, {"[2, 3]", "[steps, batch, input size]"});
  expect_failure(layer(floats(context, Floats(4, 0), {1, 2, 2})), Status::Shape, {"[6, 3]"});
  RecurrentOptions one;
  one.activations = {*find_gate_activation("tanh")};
  expect_failure(layer(x, one), Status::InvalidArgument, {"1 activations", "takes 2"});
  w.input_bias = floats(context, {1, 2});
  expect_failure(layer(x), Status::Shape, {"input bias", "[2]", "[6]"});
  w.input = floats(context, Floats(12, 0), {4, 3});
  expect_failure(layer(x), Status::Shape, {"[4, 3]", "6 rows"});
  w.input = Tensor();
  expect_failure(layer(x), Status::InvalidArgument, {"two axes"});
}

}  // namespace
}  // namespace tiny
