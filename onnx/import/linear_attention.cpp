// Recurrences over a sequence that replace attention, and the convolution before them.
#include "tensor/linear_attention.h"

#include "base/error.h"
#include "onnx/import/functions.h"
#include "onnx/import/table.h"
#include "tensor/activation.h"

namespace tiny::onnx {

namespace {

Tensors import_causal_convolution(Call& c) {
  const CausalConvolution made =
      causal_convolution(c.in(0), c.in(1), c.in_or(2, Tensor()), c.in_or(3, Tensor()));
  const std::string activation = c.text_attr("activation", "none");
  c.check(activation == "none" || activation == "silu" || activation == "swish",
          "the attribute activation is \"", activation, "\"");
  return {activation == "none" ? made.y : silu(made.y), made.state};
}

Tensors import_linear_attention(Call& c) {
  c.pass_over({"chunk_size"});  // how, not what
  const std::string rule = c.text_attr("update_rule", "gated_delta");
  c.check(rule == "linear" || rule == "gated" || rule == "delta" || rule == "gated_delta",
          "the attribute update_rule is \"", rule, "\"");
  LinearAttentionOperands operands;
  operands.heads = c.attr("q_num_heads");
  operands.groups = c.attr("kv_num_heads");
  operands.query = c.in(0);
  operands.key = c.in(1);
  operands.value = c.in(2);
  operands.state = c.in_or(3, Tensor());
  if (rule == "gated" || rule == "gated_delta") operands.decay = c.in(4);
  if (rule == "delta" || rule == "gated_delta") operands.beta = c.in(5);
  const float scale = c.real_attr("scale", 0);
  const LinearAttention made = linear_attention(
      operands, scale == 0 ? std::nullopt : std::optional(static_cast<double>(scale)));
  return {made.y, made.state};
}

constexpr int64_t kNow = kNewestOpset;

// clang-format off
constexpr Row kRows[] = {
    {"CausalConvWithState", 27, kNow, import_causal_convolution},
    {"LinearAttention",     27, kNow, import_linear_attention},
};
// clang-format on

}  // namespace

std::span<const Row> linear_attention_rows() {
  return kRows;
}

}  // namespace tiny::onnx
