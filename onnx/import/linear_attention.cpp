// Recurrences over a sequence that replace attention, and the convolution before them.
#include <cmath>

#include "base/error.h"
#include "onnx/import/functions.h"
#include "onnx/import/table.h"
#include "tensor/activation.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/joining.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"
#include "tensor/window.h"

namespace tiny::onnx {

namespace {

// Steps of one sequence; each becomes a copy of the update.
constexpr int64_t kStepsMax = 4096;

// Each channel with its own kernel, looking back only; the state is what it still looks at.
Tensors import_causal_convolution(Call& c) {
  const Tensor& x = c.in(0);
  const Tensor& weight = c.in(1);
  c.check(x.rank() == 3 && weight.rank() == 3 && dim_of(weight, 0) == dim_of(x, 1),
          "weights of shape ", weight.shape(), " for ", x.shape());
  const int64_t kept = dim_of(weight, 2) - 1;
  const Shape shape = to_shape({dim_of(x, 0), dim_of(x, 1), kept});
  const Tensor past = c.has(3) ? c.in(3) : full(c.context(), x.dtype(), shape, 0);
  const Tensor whole = kept > 0 ? concat(std::vector<Tensor>{past, x}, 2) : x;
  const Tensor y = conv(whole, weight, c.in_or(2, Tensor()), Window().with_groups(dim_of(x, 1)));
  const std::string activation = c.text_attr("activation", "none");
  c.check(activation == "none" || activation == "silu" || activation == "swish",
          "the attribute activation is \"", activation, "\"");
  const int64_t end = dim_of(whole, 2);
  return {activation == "none" ? y : silu(y), slice_axis(whole, 2, end - kept, end)};
}

// The operands of one update, [B, heads, ..].
struct Step {
  Tensor query, key, value, decay, beta;
};

// S becomes exp(g) S + beta k (v - exp(g) S^T k), or a part of that.
Tensor updated(const Tensor& state, const Step& s, bool is_delta) {
  const Tensor kept = s.decay ? state * exp(s.decay) : state;
  Tensor value = s.value;
  if (is_delta) {
    const Tensor seen = matmul(unsqueeze(s.key, {2}), kept);  // [B, H, 1, dv]
    value = (value - squeeze(seen, {2})) * s.beta;
  }
  return kept + unsqueeze(s.key, {3}) * unsqueeze(value, {2});
}

Tensors import_linear_attention(Call& c) {
  const Tensor& q = c.in(0);
  const int64_t heads = c.attr("q_num_heads");
  const int64_t groups = c.attr("kv_num_heads");
  const std::string rule = c.text_attr("update_rule", "gated_delta");
  c.check(rule == "linear" || rule == "gated" || rule == "delta" || rule == "gated_delta",
          "the attribute update_rule is \"", rule, "\"");
  c.check(heads > 0 && groups > 0 && heads % groups == 0, heads, " query heads for ", groups,
          " key heads");
  c.check(q.rank() == 3 && c.in(1).rank() == 3 && c.in(2).rank() == 3, "it takes three axes");
  const int64_t batch = dim_of(q, 0), steps = dim_of(q, 1);
  if (steps == 0 || steps > kStepsMax) c.unsupported("a sequence of ", steps, " steps");
  const DType wide = q.dtype().bits() < 32 ? kFloat32 : q.dtype();
  // [B, T, H * d] as [B, T, H, d].
  const auto split = [&](const Tensor& x, int64_t n) {
    c.check(x.rank() == 3 && n > 0 && dim_of(x, 2) % n == 0, "shape ", x.shape(), " with ", n,
            " heads");
    return reshape(cast(x, wide), to_shape({batch, steps, n, dim_of(x, 2) / n}));
  };
  const Tensor query = split(q, heads);
  const Tensor key = split(c.in(1), groups);
  const Tensor value = split(c.in(2), groups);
  const bool is_gated = rule == "gated" || rule == "gated_delta";
  const bool is_delta = rule == "delta" || rule == "gated_delta";
  const Tensor decay = is_gated ? split(c.in(4), groups) : Tensor();
  const Tensor beta = is_delta ? split(c.in(5), std::min(groups, dim_of(c.in(5), 2))) : Tensor();
  const int64_t dk = dim_of(key, 3), dv = dim_of(value, 3);
  c.check(dim_of(query, 3) == dk, "queries of ", dim_of(query, 3), " elements, keys of ", dk);
  const float given = c.real_attr("scale", 0);
  const double scale = given != 0 ? given : 1 / std::sqrt(static_cast<double>(dk));
  Tensor state = c.has(3) ? cast(c.in(3), wide)
                          : full(c.context(), wide, to_shape({batch, groups, dk, dv}), 0);
  const auto at = [](const Tensor& x, int64_t t) {
    return squeeze(slice_axis(x, 1, t, t + 1), {1});
  };
  std::vector<Tensor> outputs;
  for (int64_t t = 0; t < steps; ++t) {
    Step s;
    s.key = at(key, t);
    s.value = at(value, t);
    if (is_gated) s.decay = unsqueeze(at(decay, t), {3});  // [B, H, dk or 1, 1]
    if (is_delta) s.beta = at(beta, t);                    // [B, H or 1, 1]
    state = updated(state, s, is_delta);
    // Query heads that share a state: [B, groups, heads / groups, dk] by [B, groups, dk, dv].
    const Tensor asked = reshape(at(query, t), to_shape({batch, groups, heads / groups, dk}));
    outputs.push_back(reshape(matmul(asked, state), to_shape({batch, heads * dv})));
  }
  const Tensor out = stack(outputs, 1) * number(state, scale);
  return {cast(out, q.dtype()), cast(state, c.has(3) ? c.in(3).dtype() : q.dtype())};
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
