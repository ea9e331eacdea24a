// Recurrent networks, unrolled over the sequence: one cell after the other.
#include <algorithm>

#include "base/error.h"
#include "onnx/import/functions.h"
#include "onnx/import/table.h"
#include "tensor/activation.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/joining.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"

namespace tiny::onnx {

namespace {

// Steps of one sequence; each becomes a copy of the cell.
constexpr int64_t kStepsMax = 4096;

// ---- Activations by name, with their two numbers.

struct Activation {
  std::string name;
  double alpha = 0;
  double beta = 0;
};

struct ActivationDefaults {
  const char* name;
  double alpha;
  double beta;
};
constexpr ActivationDefaults kActivations[] = {
    {"relu", 0, 0},         {"tanh", 0, 0},
    {"sigmoid", 0, 0},      {"softsign", 0, 0},
    {"softplus", 0, 0},     {"affine", 1, 0},
    {"leakyrelu", 0.01, 0}, {"thresholdedrelu", 1, 0},
    {"scaledtanh", 1, 1},   {"hardsigmoid", 0.2, 0.5},
    {"elu", 1, 0},
};

Tensor apply(const Activation& f, const Tensor& x) {
  const auto number_like = [&](double v) { return number(x, v); };
  if (f.name == "relu") return relu(x);
  if (f.name == "tanh") return tanh(x);
  if (f.name == "sigmoid") return sigmoid(x);
  if (f.name == "softsign") return x / (number_like(1) + abs(x));
  if (f.name == "softplus") return softplus(x);
  if (f.name == "affine") return x * number_like(f.alpha) + number_like(f.beta);
  if (f.name == "leakyrelu") return leaky_relu(x, f.alpha);
  if (f.name == "thresholdedrelu") return where(less(x, number_like(f.alpha)), number_like(0), x);
  if (f.name == "scaledtanh") return tanh(x * number_like(f.beta)) * number_like(f.alpha);
  if (f.name == "hardsigmoid") return hard_sigmoid(x, f.alpha, f.beta);
  invariant(f.name == "elu", "an activation of the table has a function");
  return elu(x, f.alpha);
}

// `each` activations for every direction, those not named being the defaults.
std::vector<Activation> activations(const Call& c, const std::vector<const char*>& defaults,
                                    int64_t directions) {
  std::vector<std::string> names;
  for (int64_t d = 0; d < directions; ++d)
    names.insert(names.end(), defaults.begin(), defaults.end());
  if (const Attribute* a = c.any_attribute("activations")) {
    c.check(a->type == AttributeType::Strings && a->strings.size() == names.size(),
            "the attribute activations has not ", names.size(), " names");
    names = a->strings;
  }
  const auto numbers_of = [&](const char* name) {
    const Attribute* a = c.any_attribute(name);
    return a && a->type == AttributeType::Floats ? a->floats : std::vector<float>();
  };
  const std::vector<float> alphas = numbers_of("activation_alpha");
  const std::vector<float> betas = numbers_of("activation_beta");
  std::vector<Activation> out;
  for (size_t i = 0; i < names.size(); ++i) {
    std::string name;
    for (char ch : names[i])
      name += ch >= 'A' && ch <= 'Z' ? static_cast<char>(ch + ('a' - 'A')) : ch;
    const auto* known = std::find_if(std::begin(kActivations), std::end(kActivations),
                                     [&](const ActivationDefaults& k) { return name == k.name; });
    c.check(known != std::end(kActivations), "the activation \"", names[i], "\" is unknown");
    out.push_back({name, i < alphas.size() ? static_cast<double>(alphas[i]) : known->alpha,
                   i < betas.size() ? static_cast<double>(betas[i]) : known->beta});
  }
  return out;
}

// ---- One direction.

struct Cell {
  Tensor w, r;      // [gates * H, I] and [gates * H, H]
  Tensor wb, rb;    // biases [gates * H], or none
  Tensor peephole;  // [3 * H], or none
  std::vector<Activation> f;
  int64_t hidden = 0;
  double clip = 0;    // 0: none
  bool flag = false;  // LSTM: input_forget; GRU: linear_before_reset
};

struct State {
  Tensor h;  // [B, H]
  Tensor c;  // of an LSTM
};

Tensor gate(const Tensor& x, const Cell& cell, int64_t i) {
  return slice_axis(x, -1, i * cell.hidden, (i + 1) * cell.hidden);
}

Tensor clipped(const Tensor& x, const Cell& cell) {
  if (cell.clip <= 0) return x;
  return minimum(maximum(x, number(x, -cell.clip)), number(x, cell.clip));
}

Tensor turned(const Tensor& w) {
  return transpose(w, 0, 1);
}

using StepFunction = State (*)(const Cell&, const Tensor& input, const State&);

State rnn_step(const Cell& cell, const Tensor& input, const State& s) {
  const Tensor x = input + matmul(s.h, turned(cell.r));
  return {apply(cell.f[0], clipped(cell.rb ? x + cell.rb : x, cell)), Tensor()};
}

// Gates z, r, h.
State gru_step(const Cell& cell, const Tensor& input, const State& s) {
  Tensor from_state = matmul(s.h, turned(cell.r));
  if (cell.rb) from_state = from_state + cell.rb;
  const auto both = [&](int64_t i) {
    return apply(cell.f[0], clipped(gate(input, cell, i) + gate(from_state, cell, i), cell));
  };
  const Tensor z = both(0);
  const Tensor r = both(1);
  Tensor remembered = r * gate(from_state, cell, 2);
  if (!cell.flag) {
    remembered = matmul(r * s.h, turned(slice_axis(cell.r, 0, 2 * cell.hidden, 3 * cell.hidden)));
    if (cell.rb) remembered = remembered + gate(cell.rb, cell, 2);
  }
  const Tensor fresh = apply(cell.f[1], clipped(gate(input, cell, 2) + remembered, cell));
  return {(number(z, 1) - z) * fresh + z * s.h, Tensor()};
}

// Gates i, o, f, c; peepholes i, o, f.
State lstm_step(const Cell& cell, const Tensor& input, const State& s) {
  Tensor x = input + matmul(s.h, turned(cell.r));
  if (cell.rb) x = x + cell.rb;
  const auto opened = [&](int64_t i, const Tensor& state) {
    Tensor g = gate(x, cell, i);
    if (cell.peephole) g = g + gate(cell.peephole, cell, i) * state;
    return apply(cell.f[0], clipped(g, cell));
  };
  const Tensor in = opened(0, s.c);
  const Tensor forget = cell.flag ? number(in, 1) - in : opened(2, s.c);
  const Tensor fresh = apply(cell.f[1], clipped(gate(x, cell, 3), cell));
  const Tensor c = forget * s.c + in * fresh;
  return {opened(1, c) * apply(cell.f[2], c), c};
}

struct Sequence {
  Tensor y;  // [T, B, H]
  State last;
};

// x [T, B, I]; lengths [B, 1] or none: beyond them, the state stays and the output is 0.
Sequence unrolled(const Cell& cell, StepFunction step, const Tensor& x, State state, bool backwards,
                  const Tensor& lengths) {
  const int64_t steps = dim_of(x, 0);
  // The input's part of all gates, for all steps in one product.
  Tensor inputs = matmul(x, turned(cell.w));
  if (cell.wb) inputs = inputs + cell.wb;
  std::vector<Tensor> outputs(static_cast<size_t>(steps));
  for (int64_t n = 0; n < steps; ++n) {
    const int64_t t = backwards ? steps - 1 - n : n;
    State next = step(cell, squeeze(slice_axis(inputs, 0, t, t + 1), {0}), state);
    Tensor seen = next.h;
    if (lengths) {
      const Tensor valid = less(number_int(lengths, t), lengths);
      seen = where(valid, seen, number(seen, 0));
      next.h = where(valid, next.h, state.h);
      if (next.c) next.c = where(valid, next.c, state.c);
    }
    outputs[static_cast<size_t>(t)] = seen;
    state = next;
  }
  return {stack(outputs, 0), state};
}

// ---- The operators.

struct Kind {
  int64_t gates;
  StepFunction step;
  std::vector<const char*> activations;
  bool has_cell;
};

Tensor part_of(const Call& c, size_t input, int64_t direction) {
  if (!c.has(input) && input > 2) return {};
  c.check(direction < dim_of(c.in(input), 0), "input ", input, " has ", dim_of(c.in(input), 0),
          " directions");
  return squeeze(slice_axis(c.in(input), 0, direction, direction + 1), {0});
}

Tensors recurrent(Call& c, const Kind& kind, const char* flag_name) {
  const bool batch_first = c.attr("layout", 0) == 1;
  const auto time_first = [&](const Tensor& t) { return batch_first ? transpose(t, 0, 1) : t; };
  c.check(c.in(0).rank() == 3, "x has ", c.in(0).rank(), " axes and must have 3");
  const Tensor x = time_first(c.in(0));
  const int64_t steps = dim_of(x, 0);
  if (steps > kStepsMax || steps == 0) c.unsupported("a sequence of ", steps, " steps");
  const std::string direction = c.text_attr("direction", "forward");
  const bool both = direction == "bidirectional";
  c.check(both || direction == "forward" || direction == "reverse", "the attribute direction is \"",
          direction, "\"");
  const int64_t directions = both ? 2 : 1;
  const std::vector<Activation> functions = activations(c, kind.activations, directions);
  const Tensor lengths = c.has(4) ? reshape(cast(c.in(4), kInt64), to_shape({-1, 1})) : Tensor();
  std::vector<Tensor> outputs, last_h, last_c;
  for (int64_t d = 0; d < directions; ++d) {
    Cell cell;
    cell.w = part_of(c, 1, d);
    cell.r = part_of(c, 2, d);
    cell.hidden = dim_of(cell.r, 1);
    const int64_t rows = kind.gates * cell.hidden;
    c.check(dim_of(cell.r, 0) == rows && dim_of(cell.w, 0) == rows, "weights of ",
            dim_of(cell.w, 0), " and ", dim_of(cell.r, 0), " rows, not ", rows);
    if (const Tensor bias = part_of(c, 3, d)) {
      c.check(dim_of(bias, 0) == 2 * rows, "a bias of ", dim_of(bias, 0), " elements");
      cell.wb = slice_axis(bias, 0, 0, rows);
      cell.rb = slice_axis(bias, 0, rows, 2 * rows);
    }
    if (kind.has_cell) cell.peephole = part_of(c, 7, d);
    const auto each = static_cast<int64_t>(kind.activations.size());
    cell.f.assign(functions.begin() + d * each, functions.begin() + (d + 1) * each);
    cell.clip = c.real_attr("clip", 0);
    cell.flag = flag_name && c.flag(flag_name, false);
    const auto initial = [&](size_t input) {
      if (!c.has(input))
        return full(c.context(), x.dtype(), to_shape({dim_of(x, 1), cell.hidden}), 0);
      return squeeze(slice_axis(time_first(c.in(input)), 0, d, d + 1), {0});
    };
    const State start{initial(5), kind.has_cell ? initial(6) : Tensor()};
    const Sequence s =
        unrolled(cell, kind.step, x, start, direction == "reverse" || d == 1, lengths);
    outputs.push_back(s.y);
    last_h.push_back(s.last.h);
    if (kind.has_cell) last_c.push_back(s.last.c);
  }
  // [T, directions, B, H] and [directions, B, H], or with the batch first.
  const Tensor y = stack(outputs, 1);
  Tensors out{batch_first ? permute(y, {2, 0, 1, 3}) : y, time_first(stack(last_h, 0))};
  if (kind.has_cell) out.push_back(time_first(stack(last_c, 0)));
  return out;
}

Tensors import_rnn(Call& c) {
  return recurrent(c, {1, rnn_step, {"Tanh"}, false}, nullptr);
}
Tensors import_gru(Call& c) {
  return recurrent(c, {3, gru_step, {"Sigmoid", "Tanh"}, false}, "linear_before_reset");
}
Tensors import_lstm(Call& c) {
  return recurrent(c, {4, lstm_step, {"Sigmoid", "Tanh", "Tanh"}, true}, "input_forget");
}

constexpr int64_t kNow = kNewestOpset;

// clang-format off
constexpr Row kRows[] = {
    {"RNN",  7, kNow, import_rnn},
    {"GRU",  7, kNow, import_gru},
    {"LSTM", 7, kNow, import_lstm},
};
// clang-format on

}  // namespace

std::span<const Row> recurrent_rows() {
  return kRows;
}

}  // namespace tiny::onnx
