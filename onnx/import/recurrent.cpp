// Recurrent networks: ONNX's layout of weights and states, direction by direction.
#include "tensor/recurrent.h"

#include "base/error.h"
#include "onnx/import/functions.h"
#include "onnx/import/table.h"
#include "tensor/joining.h"
#include "tensor/movement.h"

namespace tiny::onnx {

namespace {

// The functions of every direction, those not named being the defaults.
std::vector<GateActivation> activations(const Call& c, RecurrentKind kind, int64_t directions) {
  const std::vector<const char*> defaults = default_gate_activations(kind);
  std::vector<std::string> names;
  for (int64_t d = 0; d < directions; ++d)
    names.insert(names.end(), defaults.begin(), defaults.end());
  if (auto given = c.strings_attr("activations")) {
    c.check(given->size() == names.size(), "the attribute activations has not ", names.size(),
            " names");
    names = std::move(*given);
  }
  const std::vector<float> alphas = c.floats_attr("activation_alpha");
  const std::vector<float> betas = c.floats_attr("activation_beta");
  std::vector<GateActivation> out;
  size_t alpha = 0, beta = 0;  // Each function takes the next of those that it has.
  for (const std::string& name : names) {
    std::optional<GateActivation> f = find_gate_activation(name);
    c.check(f.has_value(), "the activation \"", name, "\" is unknown");
    if (f->numbers > 0 && alpha < alphas.size()) f->alpha = static_cast<double>(alphas[alpha++]);
    if (f->numbers > 1 && beta < betas.size()) f->beta = static_cast<double>(betas[beta++]);
    out.push_back(*f);
  }
  return out;
}

// Of an input that has the directions first; none where it may be and is left out.
Tensor part_of(const Call& c, size_t input, int64_t direction) {
  if (!c.has(input) && input > 2) return {};
  c.check(direction < dim_of(c.in(input), 0), "input ", input, " has ", dim_of(c.in(input), 0),
          " directions");
  return squeeze(slice_axis(c.in(input), 0, direction, direction + 1), {0});
}

// One for each direction, or a row of them.
Tensor row_of(const Call& c, size_t input, int64_t direction) {
  const Tensor part = part_of(c, input, direction);
  return part && part.rank() == 0 ? unsqueeze(part, {0}) : part;
}

// DynamicQuantizeLSTM has its weights as columns of gates, and their scales and zero points behind
// an LSTM's inputs.
RecurrentWeights weights_of(const Call& c, RecurrentKind kind, bool is_quantized,
                            int64_t direction) {
  RecurrentWeights w;
  w.input = part_of(c, 1, direction);
  w.hidden = part_of(c, 2, direction);
  if (is_quantized) {
    w.input = transpose(w.input, 0, 1);
    w.hidden = transpose(w.hidden, 0, 1);
    w.input_scale = row_of(c, 8, direction);
    w.input_zero = row_of(c, 9, direction);
    w.hidden_scale = row_of(c, 10, direction);
    w.hidden_zero = row_of(c, 11, direction);
    c.check(w.input_scale && w.hidden_scale, "its weights have no scales");
  }
  if (const Tensor bias = part_of(c, 3, direction)) {
    const int64_t rows = gate_count(kind) * dim_of(w.hidden, 1);
    c.check(dim_of(bias, 0) == 2 * rows, "a bias of ", dim_of(bias, 0), " elements, not ",
            2 * rows);
    w.input_bias = slice_axis(bias, 0, 0, rows);
    w.hidden_bias = slice_axis(bias, 0, rows, 2 * rows);
  }
  if (kind == RecurrentKind::Lstm) w.peephole = part_of(c, 7, direction);
  return w;
}

Tensors recurrent(Call& c, RecurrentKind kind, bool is_quantized = false) {
  const bool is_lstm = kind == RecurrentKind::Lstm;
  const bool batch_first = c.attr("layout", 0) == 1;
  const auto time_first = [&](const Tensor& t) { return batch_first ? transpose(t, 0, 1) : t; };
  c.check(c.in(0).rank() == 3, "x has ", c.in(0).rank(), " axes and must have 3");
  c.pass_over({"output_sequence"});
  const int64_t hidden = dim_of(c.in(2), is_quantized ? 1 : 2);
  const int64_t said = c.attr("hidden_size", hidden);
  c.check(said == hidden, "the attribute hidden_size is ", said,
          ", but the weights of input 2 are for ", hidden);
  const Tensor x = time_first(c.in(0));
  const std::string direction = c.text_attr("direction", "forward");
  const bool both = direction == "bidirectional";
  c.check(both || direction == "forward" || direction == "reverse", "the attribute direction is \"",
          direction, "\"");
  const int64_t directions = both ? 2 : 1;
  const std::vector<GateActivation> functions = activations(c, kind, directions);
  const int64_t each = std::ssize(functions) / directions;
  RecurrentOptions options;
  options.order = GateOrder::Onnx;
  options.clip = static_cast<double>(c.real_attr("clip", 0));
  if (is_lstm) options.input_forget = c.flag("input_forget", false);
  if (kind == RecurrentKind::Gru)
    options.linear_before_reset = c.flag("linear_before_reset", false);
  Tensors outputs, last_h, last_c;
  for (int64_t d = 0; d < directions; ++d) {
    const RecurrentWeights weights = weights_of(c, kind, is_quantized, d);
    options.activations.assign(functions.begin() + d * each, functions.begin() + (d + 1) * each);
    RecurrentState start = initial_state(kind, x, size_of(x, 1), size_of(weights.hidden, 1));
    const auto given = [&](size_t input) {
      return squeeze(slice_axis(time_first(c.in(input)), 0, d, d + 1), {0});
    };
    if (c.has(5)) start.h = given(5);
    if (is_lstm && c.has(6)) start.c = given(6);
    const RecurrentLayer layer = recurrent_layer(
        kind, x, start, weights, options, direction == "reverse" || d == 1, c.in_or(4, Tensor()));
    outputs.push_back(layer.y);
    last_h.push_back(layer.last.h);
    if (is_lstm) last_c.push_back(layer.last.c);
  }
  // [T, directions, B, H] and [directions, B, H], or with the batch first.
  const Tensor y = stack(outputs, 1);
  Tensors out{batch_first ? permute(y, {2, 0, 1, 3}) : y, time_first(stack(last_h, 0))};
  if (is_lstm) out.push_back(time_first(stack(last_c, 0)));
  return out;
}

template <RecurrentKind kKind>
Tensors import_recurrent(Call& c) {
  return recurrent(c, kKind);
}

Tensors import_quantized_lstm(Call& c) {
  return recurrent(c, RecurrentKind::Lstm, true);
}

constexpr int64_t kNow = kNewestOpset;

// clang-format off
constexpr Row kRows[] = {
    {"RNN",  1, kNow, import_recurrent<RecurrentKind::Rnn>},
    {"GRU",  1, kNow, import_recurrent<RecurrentKind::Gru>},
    {"LSTM", 1, kNow, import_recurrent<RecurrentKind::Lstm>},
    {"DynamicQuantizeLSTM", 1, 1, import_quantized_lstm, 0, nullptr, kContributed},
};
// clang-format on

}  // namespace

std::span<const Row> recurrent_rows() {
  return kRows;
}

}  // namespace tiny::onnx
