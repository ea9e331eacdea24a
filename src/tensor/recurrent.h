// Recurrent networks: a cell makes a new state of an input and a state, a layer takes a cell along
// a sequence.
//
// Weights are rows of gates, one gate after the other:
//   RNN   one
//   GRU   reset r, update z, new n
//   LSTM  input i, forget f, cell g, output o
// in the order that GateOrder names.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "tensor/tensor.h"

namespace tiny {

enum class RecurrentKind : uint8_t { Rnn, Gru, Lstm };

// PyTorch: r z n and i f g o.  Onnx: z r n and i o f g.
enum class GateOrder : uint8_t { PyTorch, Onnx };

// What a gate goes through: function(x, alpha, beta).
struct GateActivation {
  Tensor (*function)(const Tensor& x, double alpha, double beta) = nullptr;
  double alpha = 0;
  double beta = 0;
  int numbers = 0;  // that it takes: none, alpha, or both
};
// By ONNX' name, in letters of any case, with the numbers that it gives where none are given; none
// for a name that it has not.
std::optional<GateActivation> find_gate_activation(std::string_view name);
// Names of the functions that a cell has: of its gates, of what is new, and of an LSTM's output.
std::vector<const char*> default_gate_activations(RecurrentKind kind);
// Rows of weights for each element of the state.
int64_t gate_count(RecurrentKind kind);

// Of one direction of one layer.
struct RecurrentWeights {
  Tensor input;                    // [gates * hidden, input size]
  Tensor hidden;                   // [gates * hidden, hidden]
  Tensor input_bias, hidden_bias;  // [gates * hidden], or none
  Tensor peephole;                 // of an LSTM: [3 * hidden], of gates i, o, f; or none
  // Of weights that are integers of 8 bits, and stay so: w = (integer - zero) * scale, for each row
  // or for all ([1]).  What they are multiplied with is quantised while it runs, the input of all
  // steps at once, the state in each.
  Tensor input_scale = {}, input_zero = {}, hidden_scale = {}, hidden_zero = {};
};

struct RecurrentOptions {
  GateOrder order = GateOrder::PyTorch;
  std::vector<GateActivation> activations;  // none: the default ones
  double clip = 0;            // what goes into a function stays within -clip and clip; 0: as it is
  bool input_forget = false;  // LSTM: the forget gate is 1 - the input gate
  // GRU: the reset gate multiplies the state's product with its weights, as in PyTorch; if not, the
  // state before that product.
  bool linear_before_reset = true;
};

// [batch, hidden] each.
struct RecurrentState {
  Tensor h;
  Tensor c;  // of an LSTM
};

// Zeros, for a batch of `like`'s dtype.
RecurrentState initial_state(RecurrentKind kind, const Tensor& like, const Dim& batch,
                             const Dim& hidden);

struct RecurrentLayer {
  Tensor y;  // [steps, batch, hidden]
  RecurrentState last;
};
// One after the other along x [steps, batch, input size]; `reverse` begins at the end, and y is in
// the order of x all the same.  Of sequence b only the first lengths[b] steps count (int64 [batch];
// none: all): after them the state stays and y is 0.
RecurrentLayer recurrent_layer(RecurrentKind kind, const Tensor& x, const RecurrentState& state,
                               const RecurrentWeights& weights,
                               const RecurrentOptions& options = {}, bool reverse = false,
                               const Tensor& lengths = Tensor());

}  // namespace tiny
