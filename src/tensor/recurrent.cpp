#include "tensor/recurrent.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "tensor/activation.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/promotion.h"
#include "tensor/quantization.h"
#include "tensor/recurrence.h"

namespace tiny {

namespace {

// ---- Functions of gates.

struct NamedActivation {
  const char* name;
  GateActivation activation;
};

// clang-format off
constexpr NamedActivation kActivations[] = {
    {"relu",            {[](const Tensor& x, double, double) { return relu(x); }}},
    {"tanh",            {[](const Tensor& x, double, double) { return tanh(x); }}},
    {"sigmoid",         {[](const Tensor& x, double, double) { return sigmoid(x); }}},
    {"softsign",        {[](const Tensor& x, double, double) { return x / (number(x, 1) + abs(x)); }}},
    {"softplus",        {[](const Tensor& x, double, double) { return softplus(x); }}},
    {"affine",          {[](const Tensor& x, double alpha, double beta) {
                           return x * number(x, alpha) + number(x, beta);
                         }, 1, 0, 2}},
    {"leakyrelu",       {[](const Tensor& x, double alpha, double) {
                           return leaky_relu(x, alpha);
                         }, 0.01, 0, 1}},
    {"thresholdedrelu", {[](const Tensor& x, double alpha, double) {
                           return where(less(x, number(x, alpha)), number(x, 0), x);
                         }, 1, 0, 1}},
    {"scaledtanh",      {[](const Tensor& x, double alpha, double beta) {
                           return tanh(x * number(x, beta)) * number(x, alpha);
                         }, 1, 1, 2}},
    {"hardsigmoid",     {[](const Tensor& x, double alpha, double beta) {
                           return hard_sigmoid(x, alpha, beta);
                         }, 0.2, 0.5, 2}},
    {"elu",             {[](const Tensor& x, double alpha, double) { return elu(x, alpha); }, 1, 0, 1}},
};
// clang-format on

// ---- Cells, whose input has gone through its weights.

enum class Gate : uint8_t { Reset, Update, New, Input, Output, Forget, Cell };

// Which of the gates in the rows of weights, by order.
constexpr int64_t kPlaces[][7] = {
    //  r  z  n   i  o  f  g
    {0, 1, 2, 0, 3, 1, 2},  // PyTorch
    {1, 0, 2, 0, 1, 2, 3},  // Onnx
};

struct RecurrentCell {
  RecurrentKind kind;
  const RecurrentWeights& weights;
  const RecurrentOptions& options;
  std::vector<GateActivation> functions;
  int64_t hidden;

  // The elements of one gate along `axis`.
  Tensor part(const Tensor& x, int64_t place, int64_t axis = -1) const {
    return slice_axis(x, axis, place * hidden, (place + 1) * hidden);
  }
  Tensor part(const Tensor& x, Gate gate, int64_t axis = -1) const {
    const auto order = static_cast<size_t>(options.order);
    return part(x, kPlaces[order][static_cast<size_t>(gate)], axis);
  }
  Tensor apply(size_t function, Tensor x) const {
    if (options.clip > 0)
      x = minimum(maximum(x, number(x, -options.clip)), number(x, options.clip));
    return applied(function, x);
  }
  Tensor applied(size_t function, const Tensor& x) const {
    const GateActivation& f = functions[function];
    return f.function(x, f.alpha, f.beta);
  }
};

// a [.., n] by the rows of weights [m, n].
Tensor by_rows(const Tensor& a, const Tensor& weights) {
  return matmul(a, transpose(weights, 0, 1));
}
// The same by integers, where they have a scale.
Tensor by_rows(const Tensor& a, const Tensor& weights, const Tensor& scale, const Tensor& zero) {
  if (!scale) return by_rows(a, weights);
  const Quantized q = quantize_dynamically(a);
  const Tensor total = matmul_integer(q.values, q.zero, transpose(weights, 0, 1), zero);
  return cast(total, a.dtype()) * (q.scale * scale);
}
Tensor by_hidden(const Tensor& state, const RecurrentWeights& w) {
  return by_rows(state, w.hidden, w.hidden_scale, w.hidden_zero);
}

// [.., gates * hidden]: the input's part of all gates.
Tensor projected(const Tensor& x, const RecurrentWeights& weights) {
  const Tensor out = by_rows(x, weights.input, weights.input_scale, weights.input_zero);
  return weights.input_bias ? out + weights.input_bias : out;
}

// Cells of 16-bit floats compute in float32: a state is rounded once a step.
Tensor widened(const Tensor& x) {
  return cast(x, accumulator_dtype(x.dtype()));
}

RecurrentState rnn_step(const RecurrentCell& cell, const Tensor& input, const RecurrentState& s) {
  const Tensor x = widened(input) + by_hidden(s.h, cell.weights);
  const Tensor& bias = cell.weights.hidden_bias;
  return {cell.apply(0, bias ? x + bias : x), Tensor()};
}

RecurrentState gru_step(const RecurrentCell& cell, const Tensor& input, const RecurrentState& s) {
  const RecurrentWeights& w = cell.weights;
  const bool is_reset_after = cell.options.linear_before_reset;
  // Where the reset comes first, one product has the rows of the gates that take the state as it
  // is: in every order the first two.
  RecurrentWeights taken = w;
  if (!is_reset_after) {
    taken.hidden = slice_axis(w.hidden, 0, 0, 2 * cell.hidden);
    if (w.hidden_bias) taken.hidden_bias = slice_axis(w.hidden_bias, 0, 0, 2 * cell.hidden);
  }
  Tensor from_state = widened(by_hidden(s.h, taken));
  if (taken.hidden_bias) from_state = from_state + taken.hidden_bias;
  const auto both = [&](Gate gate) {
    return cell.apply(0, cell.part(input, gate) + cell.part(from_state, gate));
  };
  const Tensor z = both(Gate::Update);
  const Tensor r = both(Gate::Reset);
  Tensor remembered;
  if (is_reset_after) {
    remembered = r * cell.part(from_state, Gate::New);
  } else {
    // One value that all rows of the product read: not computed anew by each of them.
    const Tensor kept = cast(r * s.h, s.h.dtype());
    remembered = by_rows(contiguous(kept), cell.part(w.hidden, Gate::New, 0));
    if (w.hidden_bias) remembered = remembered + cell.part(w.hidden_bias, Gate::New);
  }
  const Tensor fresh = cell.apply(1, cell.part(input, Gate::New) + remembered);
  return {(number(z, 1) - z) * fresh + z * s.h, Tensor()};
}

RecurrentState lstm_step(const RecurrentCell& cell, const Tensor& input, const RecurrentState& s) {
  const RecurrentWeights& w = cell.weights;
  Tensor x = widened(input) + by_hidden(s.h, w);
  if (w.hidden_bias) x = x + w.hidden_bias;
  const auto opened = [&](Gate gate, int64_t peephole, const Tensor& state) {
    Tensor g = cell.part(x, gate);
    if (w.peephole) g = g + cell.part(w.peephole, peephole) * state;
    return cell.apply(0, g);
  };
  const Tensor in = opened(Gate::Input, 0, s.c);
  const Tensor forget =
      cell.options.input_forget ? number(in, 1) - in : opened(Gate::Forget, 2, s.c);
  const Tensor fresh = cell.apply(1, cell.part(x, Gate::Cell));
  const Tensor c = forget * s.c + in * fresh;
  return {opened(Gate::Output, 1, c) * cell.applied(2, c), c};
}

RecurrentState stepped(const RecurrentCell& cell, const Tensor& input,
                       const RecurrentState& state) {
  RecurrentState now;
  switch (cell.kind) {
    case RecurrentKind::Rnn:
      now = rnn_step(cell, input, state);
      break;
    case RecurrentKind::Gru:
      now = gru_step(cell, input, state);
      break;
    case RecurrentKind::Lstm:
      now = lstm_step(cell, input, state);
      now.c = cast(now.c, state.c.dtype());
      break;
  }
  now.h = cast(now.h, state.h.dtype());
  return now;
}

void require_bias(const Tensor& bias, const char* name, int64_t size) {
  require(!bias || (bias.rank() == 1 && decide_equal(bias.shape()[0], size)), Status::Shape,
          "a recurrent layer's ", name, " of shape ", bias ? to_string(bias.shape()) : "",
          "; it takes [", size, "]");
}

void require_scale(const Tensor& scale, const Tensor& zero, const Tensor& weights, int64_t rows) {
  const auto fits = [&](const Tensor& t) {
    return !t || (t.rank() == 1 && (t.shape()[0].is(1) || decide_equal(t.shape()[0], rows)));
  };
  require(scale ? weights.dtype().is_int() && weights.dtype().bits() == 8 : !zero, Status::DType,
          "a recurrent layer's weights of type ", weights.dtype(), scale ? " with" : " without",
          " a scale; those of 8 bits take one");
  require(fits(scale) && fits(zero), Status::Shape,
          "a recurrent layer's scale or zero point of other than 1 or ", rows, " elements");
}

RecurrentCell checked(RecurrentKind kind, const Tensor& x, const RecurrentState& state,
                      const RecurrentWeights& w, const RecurrentOptions& options) {
  require(w.input && w.hidden && w.input.rank() == 2 && w.hidden.rank() == 2,
          Status::InvalidArgument, "a recurrent layer takes weights of two axes");
  const int64_t hidden = w.hidden.shape()[1].value();
  const int64_t rows = gate_count(kind) * hidden;
  require(decide_equal(w.input.shape()[0], rows) && decide_equal(w.hidden.shape()[0], rows),
          Status::Shape, "a recurrent layer's weights of shapes ", w.input.shape(), " and ",
          w.hidden.shape(), "; with ", hidden, " elements of the state they take ", rows, " rows");
  require(decide_equal(w.input.shape()[1], x.shape().back()), Status::Shape,
          "a recurrent layer's weights of shape ", w.input.shape(), " for an input of shape ",
          x.shape());
  require_bias(w.input_bias, "input bias", rows);
  require_bias(w.hidden_bias, "hidden bias", rows);
  require_bias(w.peephole, "peephole", 3 * hidden);
  require_scale(w.input_scale, w.input_zero, w.input, rows);
  require_scale(w.hidden_scale, w.hidden_zero, w.hidden, rows);
  require(!w.hidden_scale || kind != RecurrentKind::Gru || options.linear_before_reset,
          Status::Unsupported, "a recurrent layer with integer weights of the reset state");
  const bool is_lstm = kind == RecurrentKind::Lstm;
  require(state.h && state.h.rank() == 2 && (!is_lstm || (state.c && state.c.rank() == 2)),
          Status::InvalidArgument, "a recurrent layer takes a state of two axes",
          is_lstm ? ", h and c" : "");
  RecurrentCell cell{kind, w, options, options.activations, hidden};
  const std::vector<const char*> names = default_gate_activations(kind);
  if (cell.functions.empty())
    for (const char* name : names) cell.functions.push_back(*find_gate_activation(name));
  require(cell.functions.size() == names.size(), Status::InvalidArgument, "a recurrent layer with ",
          cell.functions.size(), " activations; it takes ", names.size());
  return cell;
}

}  // namespace

std::optional<GateActivation> find_gate_activation(std::string_view name) {
  std::string low;
  for (char ch : name) low += ch >= 'A' && ch <= 'Z' ? static_cast<char>(ch + ('a' - 'A')) : ch;
  const auto* known = std::find_if(std::begin(kActivations), std::end(kActivations),
                                   [&](const NamedActivation& a) { return low == a.name; });
  if (known == std::end(kActivations)) return std::nullopt;
  return known->activation;
}

std::vector<const char*> default_gate_activations(RecurrentKind kind) {
  if (kind == RecurrentKind::Rnn) return {"tanh"};
  if (kind == RecurrentKind::Gru) return {"sigmoid", "tanh"};
  return {"sigmoid", "tanh", "tanh"};
}

int64_t gate_count(RecurrentKind kind) {
  if (kind == RecurrentKind::Rnn) return 1;
  return kind == RecurrentKind::Gru ? 3 : 4;
}

RecurrentState initial_state(RecurrentKind kind, const Tensor& like, const Dim& batch,
                             const Dim& hidden) {
  const Tensor zeros = full(like.context_ref(), like.dtype(), {batch, hidden}, 0);
  return {zeros, kind == RecurrentKind::Lstm ? zeros : Tensor()};
}

RecurrentLayer recurrent_layer(RecurrentKind kind, const Tensor& x, const RecurrentState& state,
                               const RecurrentWeights& weights, const RecurrentOptions& options,
                               bool reverse, const Tensor& lengths) {
  require(x.rank() == 3, Status::Shape, "a recurrent layer's input of shape ", x.shape(),
          "; it takes [steps, batch, input size]");
  const RecurrentCell cell = checked(kind, x, state, weights, options);
  const Dim steps = x.shape()[0];
  Recurrence layer{steps, {{projected(x, weights), 0, reverse}}, {state.h}, {reverse}};
  const Tensor ends = lengths ? reshape(cast(lengths, kInt64), to_shape({-1, 1})) : Tensor();
  if (ends) layer.sequences.push_back({arange(x.context_ref(), kInt64, steps), 0, reverse});
  if (kind == RecurrentKind::Lstm) layer.state.push_back(state.c);
  const auto step = [&](const RecurrenceStep& now) -> RecurrenceResult {
    const RecurrentState before{now.state[0], now.state.size() > 1 ? now.state[1] : Tensor()};
    RecurrentState next = stepped(cell, now.inputs[0], before);
    Tensor seen = next.h;
    if (ends) {
      const Tensor valid = less(now.inputs[1], ends);
      seen = where(valid, seen, number(seen, 0));
      next.h = where(valid, next.h, before.h);
      if (next.c) next.c = where(valid, next.c, before.c);
    }
    return {{seen}, next.c ? std::vector<Tensor>{next.h, next.c} : std::vector<Tensor>{next.h}};
  };
  // The input's part of all gates, for all steps, is one product.
  const RecurrenceResult all = recur(x.context_ref(), layer, step);
  return {all.outputs[0], {all.state[0], all.state.size() > 1 ? all.state[1] : Tensor()}};
}

}  // namespace tiny
