// Layers of sequences, by the names and definitions of torch.nn (see layers.h).
#pragma once

#include <string_view>

#include "nn/module.h"
#include "tensor/recurrent.h"

namespace tiny {

struct RecurrentLayerOptions {
  int64_t hidden = 0;
  int64_t layers = 1;  // one on top of the other
  bool is_bidirectional = false;
  bool is_batch_first = false;  // x and y are [batch, steps, ..], not [steps, batch, ..]
  bool has_bias = true;
  double dropout = 0;  // of what goes from one layer to the next, in training
};
struct RecurrentLayers {
  Tensor y;  // [steps, batch, directions * hidden], of the last layer
  Tensor h;  // after the last step, [layers * directions, batch, hidden]
  Tensor c;  // the same of an LSTM's cells
};
// torch.nn.RNN, GRU and LSTM.  `h` and `c` (may be no tensor: zeros) are what it begins with.
RecurrentLayers recurrent(Module& module, std::string_view name, RecurrentKind kind,
                          const Tensor& x, const RecurrentLayerOptions& options,
                          const Tensor& h = Tensor(), const Tensor& c = Tensor());

struct MultiHeadAttentionOptions {
  int64_t heads = 1;
  Tensor mask = {};  // as AttentionOptions'
  bool is_causal = false;
  bool has_bias = true;
  double dropout = 0;  // of the weights, in training
};
// torch.nn.MultiheadAttention with the batch first: query [batch, queries, size], key and value
// [batch, keys, ..].
Tensor multi_head_attention(Module& module, std::string_view name, const Tensor& query,
                            const Tensor& key, const Tensor& value,
                            const MultiHeadAttentionOptions& options);

}  // namespace tiny
