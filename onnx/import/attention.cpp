// Attention and the position embeddings that go with it: ONNX's layouts of heads.
#include "tensor/attention.h"

#include "base/error.h"
#include "onnx/import/functions.h"
#include "onnx/import/table.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/joining.h"
#include "tensor/movement.h"

namespace tiny::onnx {

namespace {

// [batch, heads, sequence, size]; three axes have the heads in the last.
Tensor heads_of(const Call& c, const Tensor& x, const char* attribute) {
  if (x.rank() == 4) return x;
  return permute(split_heads(x, c.attr(attribute)), {0, 2, 1, 3});
}

Tensors import_attention(Call& c) {
  const bool is_flat = c.in(0).rank() == 3;
  const Tensor q = heads_of(c, c.in(0), "q_num_heads");
  Tensor k = heads_of(c, c.in(1), "kv_num_heads");
  Tensor v = heads_of(c, c.in(2), "kv_num_heads");
  AttentionOptions options;
  if (c.has(4)) {
    options.first_query = size_of(c.in(4), 2);
    k = concat(Tensors{c.in(4), k}, 2);
  }
  if (c.has(5)) v = concat(Tensors{c.in(5), v}, 2);
  options.mask = c.in_or(3, Tensor());
  options.key_lengths = c.in_or(6, Tensor());
  options.is_causal = c.flag("is_causal", false);
  if (c.has_attribute("scale")) options.scale = static_cast<double>(c.real_attr("scale", 0));
  options.softcap = static_cast<double>(c.real_attr("softcap", 0));
  if (c.has_attribute("softmax_precision"))
    options.softmax_dtype = c.dtype_attr("softmax_precision");
  const int64_t mode = c.attr("qk_matmul_output_mode", 0);
  c.check(mode >= 0 && mode <= 3, "the attribute qk_matmul_output_mode is ", mode,
          " and must be 0 to 3");
  options.shown = static_cast<AttentionStage>(mode);
  const Attention made = scaled_dot_product_attention(q, k, v, options);
  return {is_flat ? join_heads(made.y) : made.y, k, v, made.scores};
}

Tensors import_rotary_embedding(Call& c) {
  const Tensor& given = c.in(0);
  const bool is_flat = given.rank() == 3;
  c.check(is_flat || given.rank() == 4, "it takes 3 or 4 axes; got ", given.rank());
  const Tensor x =
      is_flat ? split_heads(given, c.attr("num_heads", 0)) : permute(given, {0, 2, 1, 3});
  const int64_t size = dim_of(x, 3);
  const int64_t chosen = c.attr("rotary_embedding_dim", 0);
  const int64_t turned = chosen == 0 ? size : chosen;
  c.check(turned > 0 && turned % 2 == 0 && turned <= size, "rotary_embedding_dim = ", turned,
          " of ", size);
  const auto cache = [&](size_t i) {
    const Tensor table = c.has(3) ? gather(c.in(i), c.in(3), 0) : c.in(i);
    c.check(table.rank() == 3 && dim_of(table, 2) == turned / 2, "a cache of shape ", table.shape(),
            " for ", turned, " rotated elements");
    return table;
  };
  const Tensor out = rotary_embedding(x, cache(1), cache(2), c.flag("interleaved", false));
  return {is_flat ? reshape(out, given.shape()) : permute(out, {0, 2, 1, 3})};
}

// What a graph in an attribute makes of a tensor, whose shape and type stay.
std::function<Tensor(const Tensor&)> change_of(const Call& c, const char* attribute) {
  if (!c.has_attribute(attribute)) return {};
  return [&c, attribute](const Tensor& x) {
    const Tensors made = c.subgraph(c.graph_attr(attribute), {x});
    c.check(made.size() == 1 && made[0].shape() == x.shape() && made[0].dtype() == x.dtype(),
            "the graph ", attribute, " makes other than one tensor of shape ", x.shape(),
            " and type ", x.dtype());
    return made[0];
  };
}

Tensors import_flex_attention(Call& c) {
  for (size_t i = 0; i < 3; ++i)
    c.check(c.in(i).rank() == 4, "input ", i, " has ", c.in(i).rank(), " axes and must have 4");
  const DType given = c.in(0).dtype();
  const DType precise = c.dtype_attr("softmax_precision", given == kFloat64 ? kFloat64 : kFloat32);
  AttentionOptions options;
  if (c.has_attribute("scale")) options.scale = static_cast<double>(c.real_attr("scale", 0));
  options.change_scores = change_of(c, "score_mod");
  options.change_weights = change_of(c, "prob_mod");
  const auto wide = [&](size_t i) { return cast(c.in(i), precise); };
  return {cast(scaled_dot_product_attention(wide(0), wide(1), wide(2), options).y, given)};
}

constexpr int64_t kNow = kNewestOpset;

// clang-format off
constexpr Row kRows[] = {
    {"Attention",       23, kNow, import_attention},
    {"RotaryEmbedding", 23, kNow, import_rotary_embedding},
    {"FlexAttention",   1,  1,    import_flex_attention, 0, nullptr, "ai.onnx.preview"},
};
// clang-format on

}  // namespace

std::span<const Row> attention_rows() {
  return kRows;
}

}  // namespace tiny::onnx
