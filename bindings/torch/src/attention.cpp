// Attention that nobody wants a derivative of, as one value: six operations of the engine, where
// PyTorch's own definition is sixteen operators.  Those make it wherever there is a derivative,
// which they have of any order, and wherever somebody looks at operators (traces, batches of
// functions).
#include <ATen/SDPBackend.h>
#include <ATen/TensorSubclassLikeUtils.h>
#include <ATen/native/transformers/attention.h>
#include <torch/library.h>

#include <cmath>
#include <limits>
#include <tuple>

#include "call.h"
#include "reductions.h"

namespace tiny_torch {

namespace {

using at::Tensor;
using V = Value;

bool is_value_alone(const Tensor& tensor) {
  return tensor.is_privateuseone() && !at::isTensorSubclassLike(tensor) && tensor.numel() > 0 &&
         !(at::GradMode::is_enabled() && tensor.requires_grad()) && !tensor._fw_grad(0).defined();
}

int64_t choose(const Tensor& query, const Tensor& key, const Tensor& value,
               const std::optional<Tensor>& mask, double dropout, bool, std::optional<double>,
               bool shares_heads) {
  const bool is_one = dropout == 0 && is_value_alone(query) && is_value_alone(key) &&
                      is_value_alone(value) && (!mask || is_value_alone(*mask)) &&
                      (!shares_heads || query.size(-3) == key.size(-3));
  return static_cast<int64_t>(is_one ? at::SDPBackend::overrideable : at::SDPBackend::math);
}

// The scores of keys behind each query are nothing.
V without_later(const V& scores) {
  const V column = unsqueeze(arange(TINY_INT64, scores.size(-2)), 1);
  const V is_seen = compare(TINY_LE, arange(TINY_INT64, scores.size(-1)), column);
  return where(is_seen, scores, constant(scores.dtype(), -std::numeric_limits<double>::infinity()));
}

V attention(const Tensor& query, const Tensor& key, const Tensor& value,
            const std::optional<Tensor>& bias, bool is_causal, std::optional<double> scale) {
  const tiny_dtype given = dtype_of(query.scalar_type());
  const tiny_dtype dtype = wide(given);
  const double factor = scale.value_or(1 / std::sqrt(static_cast<double>(query.size(-1))));
  // Half of it for each operand, as PyTorch does it: products of 16-bit floats stay in range.
  const double root = std::sqrt(std::fabs(factor));
  const V left = cast(read(query), dtype) * number(dtype, std::copysign(root, factor));
  const V right = transpose(cast(read(key), dtype), -1, -2) * number(dtype, root);
  V scores = matmul(left, right);
  if (is_causal) scores = without_later(scores);
  if (bias && bias->defined()) scores = scores + cast(read(*bias), dtype);
  return cast(matmul(safe_softmax(scores, query.dim() - 1), cast(read(value), dtype)), given);
}

using Attended =
    std::tuple<Tensor, Tensor, Tensor, Tensor, c10::SymInt, c10::SymInt, Tensor, Tensor, Tensor>;

Attended fused(const Tensor& query, const Tensor& key, const Tensor& value,
               const std::optional<Tensor>& bias, double dropout, bool is_causal, bool wants_mask,
               std::optional<double> scale) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      dropout == 0 && !wants_mask,
      "tiny: _scaled_dot_product_fused_attention_overrideable drops nothing, got dropout_p ",
      dropout, "; torch.nn.functional.scaled_dot_product_attention takes any");
  const Tensor made = tensor_of(attention(query, key, value, bias, is_causal, scale));
  return {made, {}, {}, {}, query.sym_size(-2), key.sym_size(-2), {}, {}, {}};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_scaled_dot_product_fused_attention_overrideable", TORCH_FN(fused));
}

}  // namespace

}  // namespace tiny_torch

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &tiny_torch::choose)
}  // namespace at::native
