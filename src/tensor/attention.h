// Attention, and the position embeddings that go with it.
#pragma once

#include <optional>

#include "tensor/tensor.h"

namespace tiny {

// A stage of the scores: products of queries and keys as they are scaled, within the cap, with
// masks added, and the weights that the softmax makes of them.
enum class AttentionStage : uint8_t { Scaled, Capped, Masked, Weights };

struct AttentionOptions {
  // Broadcasts to [batch, heads, queries, keys]: bool, true where a query may look, or numbers that
  // are added to the scores.  Keys beyond its last axis are not looked at.  May be none.
  Tensor mask;
  // Only the first key_lengths[b] keys of sequence b are looked at: integers [batch], or none.
  Tensor key_lengths;
  // A query looks at no later key; the first query stands at the key of this number.
  bool is_causal = false;
  Dim first_query = 0;
  // A number for each head, [heads], that takes its share of the softmax as a key without a value
  // would; or none.
  Tensor sink;
  std::optional<double> scale;         // of the products; none: 1 / sqrt(size)
  double softcap = 0;                  // above 0: scores become softcap * tanh(scores / softcap)
  std::optional<DType> softmax_dtype;  // none: the dtype of the query
  AttentionStage shown = AttentionStage::Scaled;
};
struct Attention {
  Tensor y;       // [batch, heads, queries, value size]
  Tensor scores;  // [batch, heads, queries, keys], after the stage that was asked for
};
// softmax(query key^T * scale + masks) value, for query [batch, heads, queries, size],
// key [batch, groups, keys, size] and value [batch, groups, keys, value size], where groups divides
// heads: consecutive heads share a key and value.
Attention scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                       const AttentionOptions& options = {});

// [batch, sequence, heads * size] as [batch, sequence, heads, size].
Tensor split_heads(const Tensor& x, int64_t heads);
// [batch, heads, sequence, size] as [batch, sequence, heads * size].
Tensor join_heads(const Tensor& x);

// Rotates pairs of elements of x [batch, sequence, heads, size] by the angles whose cosine and sine
// are given, [batch or 1, sequence, pairs]; the elements after the first 2 * pairs stay.  The
// elements of a pair stand side by side (`interleaved`) or `pairs` apart.
Tensor rotary_embedding(const Tensor& x, const Tensor& cosine, const Tensor& sine,
                        bool interleaved = false);

}  // namespace tiny
