#include "tensor/linear_attention.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "tensor/attention.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/joining.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/recurrence.h"
#include "tensor/window.h"

namespace tiny {

CausalConvolution causal_convolution(const Tensor& x, const Tensor& weight, const Tensor& bias,
                                     const Tensor& state) {
  require(x.rank() == 3 && weight.rank() == 3 && decide_equal(weight.shape()[0], x.shape()[1]) &&
              weight.shape()[2].value() >= 1,
          Status::Shape, "causal_convolution: weights of shape ", weight.shape(), " for ",
          x.shape(), "; it takes [channels, 1, taps] for [batch, channels, steps]");
  const int64_t channels = x.shape()[1].value();
  const int64_t kept = weight.shape()[2].value() - 1;
  const Tensor past =
      state ? state : full(x.context_ref(), x.dtype(), {x.shape()[0], Dim(channels), Dim(kept)}, 0);
  const Tensor parts[] = {past, x};
  const Tensor whole = kept > 0 ? concat(parts, 2) : x;
  const Dim end = whole.shape()[2];
  return {conv(whole, weight, bias, Window().with_groups(channels)),
          slice_axis(whole, 2, end - Dim(kept), end)};
}

namespace {

// The operands of one update, [batch, groups, ..].
struct Update {
  Tensor key, value, decay, beta;
};

Tensor updated(const Tensor& state, const Update& u) {
  const Tensor kept = u.decay ? state * exp(unsqueeze(u.decay, {3})) : state;
  Tensor value = u.value;
  if (u.beta) {
    const Tensor seen = matmul(unsqueeze(u.key, {2}), kept);  // [batch, groups, 1, value size]
    value = (value - squeeze(seen, {2})) * u.beta;
  }
  return kept + unsqueeze(u.key, {3}) * unsqueeze(value, {2});
}

}  // namespace

LinearAttention linear_attention(const LinearAttentionOperands& given,
                                 std::optional<double> scale) {
  const int64_t groups = given.groups;
  require(given.heads > 0 && groups > 0 && given.heads % groups == 0, Status::InvalidArgument,
          "linear_attention with ", given.heads, " query heads for ", groups,
          " key heads; wanted a multiple of these");
  const DType dtype = given.query.dtype();
  const DType wide = dtype.bits() < 32 ? kFloat32 : dtype;
  // [batch, steps, n, ..]
  const auto split = [&](const Tensor& x, int64_t n) { return split_heads(cast(x, wide), n); };
  std::vector<Tensor> sequences{split(given.query, given.heads), split(given.key, groups),
                                split(given.value, groups)};
  const Dim batch = sequences[0].shape()[0];
  const Dim size = sequences[1].shape()[3], value_size = sequences[2].shape()[3];
  require(decide_equal(sequences[0].shape()[3], size), Status::Shape,
          "linear_attention: queries of ", sequences[0].shape()[3], " elements, keys of ", size,
          "; wanted the same");
  const bool decays = static_cast<bool>(given.decay), is_delta = static_cast<bool>(given.beta);
  if (decays) sequences.push_back(split(given.decay, groups));
  if (is_delta)
    sequences.push_back(split(given.beta, std::min(groups, given.beta.shape().back().value())));
  const Tensor start =
      given.state ? cast(given.state, wide)
                  : full(given.query.context_ref(), wide, {batch, groups, size, value_size}, 0);
  const auto step = [&](const RecurrenceStep& now) -> RecurrenceResult {
    Update u{now.inputs[1], now.inputs[2], Tensor(), Tensor()};
    if (decays) u.decay = now.inputs[3];
    if (is_delta) u.beta = now.inputs.back();
    const Tensor state = updated(now.state[0], u);
    // Heads that share a state: [.., heads / groups, size] by [.., size, value size].
    const Tensor asked = reshape(now.inputs[0], {batch, groups, given.heads / groups, size});
    return {{reshape(matmul(asked, state), {batch, value_size * Dim(given.heads)})}, {state}};
  };
  Recurrence recurrence{sequences[0].shape()[1], {}, {start}, {}};
  for (const Tensor& s : sequences) recurrence.sequences.push_back({s, 1, false});
  const RecurrenceResult all = recur(given.query.context_ref(), recurrence, step);
  const Tensor output = move_axis(all.outputs[0], 0, 1);
  const double factor = scale.value_or(1 / std::sqrt(static_cast<double>(size.value())));
  return {cast(output * number(output, factor), dtype),
          cast(all.state[0], given.state ? given.state.dtype() : dtype)};
}

}  // namespace tiny
