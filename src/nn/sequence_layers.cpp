#include "nn/sequence_layers.h"

#include <cmath>
#include <vector>

#include "base/error.h"
#include "nn/layers.h"
#include "tensor/activation.h"
#include "tensor/attention.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/joining.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"

namespace tiny {

namespace {

// A part of [parts, ..].
Tensor part(const Tensor& all, int64_t i) {
  return squeeze(slice_axis(all, 0, i, i + 1), {0});
}

RecurrentWeights weights_of(Module& module, std::string_view name, RecurrentKind kind,
                            const std::string& suffix, int64_t inputs,
                            const RecurrentLayerOptions& options) {
  const int64_t rows = gate_count(kind) * options.hidden;
  const double limit = 1 / std::sqrt(static_cast<double>(options.hidden));
  const auto made = [&](const char* what, const Ints& shape) {
    return module.parameter(cat(name, '.', what, suffix), shape, {Initial::Uniform, -limit, limit});
  };
  RecurrentWeights out;
  out.input = made("weight_ih_l", {rows, inputs});
  out.hidden = made("weight_hh_l", {rows, options.hidden});
  if (!options.has_bias) return out;
  out.input_bias = made("bias_ih_l", {rows});
  out.hidden_bias = made("bias_hh_l", {rows});
  return out;
}

int64_t number_of(const Tensor& x, std::string_view name) {
  const Dim size = x.shape().back();
  require(size.is_const(), Status::Unsupported, "\"", name, "\": inputs number ", size,
          ", which runs decide; wanted a number");
  return size.value();
}

}  // namespace

RecurrentLayers recurrent(Module& module, std::string_view name, RecurrentKind kind,
                          const Tensor& x, const RecurrentLayerOptions& options, const Tensor& h,
                          const Tensor& c) {
  require(x.rank() == 3, Status::Shape, "\"", name, "\": x has the shape ", x.shape(),
          "; wanted steps, batch and inputs");
  require(options.hidden > 0 && options.layers > 0, Status::InvalidArgument, "\"", name,
          "\": ", options.layers, " layers of ", options.hidden,
          " elements; wanted at least one of each");
  const bool is_lstm = kind == RecurrentKind::Lstm;
  require(is_lstm || !c, Status::InvalidArgument, "\"", name, "\": c is an LSTM's alone");
  require(!is_lstm || static_cast<bool>(h) == static_cast<bool>(c), Status::InvalidArgument, "\"",
          name, "\": one of h and c; wanted both or none");
  const int64_t directions = options.is_bidirectional ? 2 : 1;
  Tensor y = options.is_batch_first ? transpose(x, 0, 1) : x;
  const Dim batch = y.shape()[1];
  const Shape states{Dim(options.layers * directions), batch, Dim(options.hidden)};
  for (const Tensor* state : {&h, &c})
    require(!*state || Shape(state->shape()) == states, Status::Shape, "\"", name,
            "\": it begins with a state of shape ", *state ? Shape(state->shape()) : Shape(),
            "; wanted ", states);
  std::vector<Tensor> last_h, last_c;
  for (int64_t layer = 0; layer < options.layers; ++layer) {
    if (layer > 0) y = dropout(module, y, options.dropout);
    std::vector<Tensor> sides;
    for (int64_t side = 0; side < directions; ++side) {
      const std::string suffix = cat(layer, side == 1 ? "_reverse" : "");
      const RecurrentWeights weights =
          weights_of(module, name, kind, suffix, number_of(y, name), options);
      RecurrentState state = initial_state(kind, y, batch, options.hidden);
      const int64_t at = layer * directions + side;
      if (h) state.h = part(h, at);
      if (c) state.c = part(c, at);
      const RecurrentLayer made = recurrent_layer(kind, y, state, weights, {}, side == 1);
      sides.push_back(made.y);
      last_h.push_back(made.last.h);
      if (is_lstm) last_c.push_back(made.last.c);
    }
    y = directions == 1 ? sides.front() : concat(sides, 2);
  }
  return {options.is_batch_first ? transpose(y, 0, 1) : y, stack(last_h, 0),
          is_lstm ? stack(last_c, 0) : Tensor()};
}

namespace {

struct Projected {
  Tensor query, key, value;
};

// One product where all three are the same.
Projected project(Module& module, const std::string& name, const Projected& x, bool has_bias) {
  const int64_t size = number_of(x.query, name);
  const Ints sizes{size, number_of(x.key, name), number_of(x.value, name)};
  const Initialization xavier{Initial::XavierUniform, 1};
  Tensor bias;
  if (has_bias) bias = module.parameter(name + ".in_proj_bias", {3 * size}, {});
  const auto bias_of = [&](int64_t i) { return slice_axis(bias, 0, i * size, (i + 1) * size); };
  const auto times = [&](const Tensor& a, const Tensor& weight, int64_t i) {
    const Tensor product = matmul(a, transpose(weight, 0, 1));
    return has_bias ? product + bias_of(i) : product;
  };
  if (sizes[1] != size || sizes[2] != size) {
    const auto weight = [&](const char* what, size_t i) {
      return module.parameter(name + what, {size, sizes[i]}, xavier);
    };
    return {times(x.query, weight(".q_proj_weight", 0), 0),
            times(x.key, weight(".k_proj_weight", 1), 1),
            times(x.value, weight(".v_proj_weight", 2), 2)};
  }
  const Tensor weight = module.parameter(name + ".in_proj_weight", {3 * size, size}, xavier);
  if (x.query.node() == x.key.node() && x.query.node() == x.value.node()) {
    const Tensor product = matmul(x.query, transpose(weight, 0, 1));
    const std::vector<Tensor> all =
        split(has_bias ? product + bias : product, {size, size, size}, -1);
    return {all[0], all[1], all[2]};
  }
  const auto rows = [&](int64_t i) { return slice_axis(weight, 0, i * size, (i + 1) * size); };
  return {times(x.query, rows(0), 0), times(x.key, rows(1), 1), times(x.value, rows(2), 2)};
}

// With weights of which some are dropped.
Tensor attend_with_dropout(const Module& module, const Projected& p,
                           const AttentionOptions& options, double share) {
  AttentionOptions shown = options;
  shown.shown = AttentionStage::Weights;
  const Tensor weights = scaled_dot_product_attention(p.query, p.key, p.value, shown).scores;
  return matmul(dropout(module, weights, share), p.value);
}

}  // namespace

Tensor multi_head_attention(Module& module, std::string_view name, const Tensor& query,
                            const Tensor& key, const Tensor& value,
                            const MultiHeadAttentionOptions& options) {
  const std::string own(name);
  for (const Tensor* x : {&query, &key, &value})
    require(x->rank() == 3, Status::Shape, "\"", name, "\": an input has the shape ", x->shape(),
            "; wanted batch, positions and size");
  const int64_t size = number_of(query, name);
  require(options.heads > 0 && size % options.heads == 0, Status::InvalidArgument, "\"", name,
          "\": ", size, " elements for ", options.heads, " heads");
  const Projected flat = project(module, own, {query, key, value}, options.has_bias);
  const auto heads = [&](const Tensor& x) {
    return transpose(split_heads(x, options.heads), 1, 2);
  };
  const Projected p{heads(flat.query), heads(flat.key), heads(flat.value)};
  AttentionOptions how;
  how.mask = options.mask;
  how.is_causal = options.is_causal;
  const bool drops = module.is_training() && options.dropout != 0;
  const Tensor y = drops ? attend_with_dropout(module, p, how, options.dropout)
                         : scaled_dot_product_attention(p.query, p.key, p.value, how).y;
  const double limit = 1 / std::sqrt(static_cast<double>(size));
  const Tensor weight =
      module.parameter(own + ".out_proj.weight", {size, size}, {Initial::Uniform, -limit, limit});
  const Tensor out = matmul(join_heads(y), transpose(weight, 0, 1));
  return options.has_bias ? out + module.parameter(own + ".out_proj.bias", {size}, {}) : out;
}

}  // namespace tiny
