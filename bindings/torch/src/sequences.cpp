// Rows along sequences: running products, the loss of sequences that are not aligned with their
// targets.
#include <ATen/WrapDimUtils.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "call.h"

namespace tiny_torch {

namespace {

using V = Value;

void running_product(Call& c) {  // self, dim, dtype
  const V a = cast(c.value(0), dtype_of(c.target(0).scalar_type()));
  if (a.rank() == 0 || a.numel() == 0) return c.give(0, a);
  const V axis = integer(TINY_INT64, at::maybe_wrap_dim(c.integer(1), a.rank()));
  c.give(0, cast(onnx("CumProd", {cast(a, wide(a.dtype())), axis}), a.dtype()));
}

// Targets one after the other, or a row for each: rows of at least one label.
V rows_of_targets(const V& given, const Sizes& lengths) {
  const V targets = cast(given, TINY_INT64);
  if (targets.rank() == 2 && targets.size(1) > 0) return targets;
  const int64_t longest = std::max<int64_t>(1, *std::max_element(lengths.begin(), lengths.end()));
  const int64_t sizes[] = {static_cast<int64_t>(lengths.size()), longest};
  if (targets.numel() == 0) return full(TINY_INT64, sizes, 0);
  Sizes places;
  int64_t first = 0;
  for (const int64_t length : lengths) {
    for (int64_t i = 0; i < longest; ++i) places.push_back(i < length ? first + i : 0);
    first += length;
  }
  return gather(targets, reshape(list_of(places), sizes), 0);
}

struct Aligned {
  V losses;  // of each sequence
  V lengths;
};
// log_probs, targets, input_lengths, target_lengths from argument `first` on, the blank at `blank`.
Aligned aligned(const Call& c, const V& log_probability, size_t first, size_t blank) {
  const Sizes heard = c.ints(first + 2);
  const Sizes written = c.ints(first + 3);
  const int64_t steps = log_probability.size(0);
  for (const int64_t length : heard)
    TORCH_CHECK(length >= 0 && length <= steps, "Expected input_lengths to have value at most ",
                steps, ", but got value ", length);
  const V lengths = list_of(heard);
  tiny_tensor* out = nullptr;
  check(tiny_ctc_loss(log_probability.handle(),
                      rows_of_targets(c.value(first + 1), written).handle(), lengths.handle(),
                      list_of(written).handle(), c.integer(blank), TINY_REDUCTION_NONE, 0, &out));
  return {V(out), lengths};
}
void ctc(Call& c) {  // log_probs, targets, input_lengths, target_lengths, blank, zero_infinity
  const V log_probability = c.value(0);
  const Sizes written = c.ints(3);
  c.give(0, aligned(c, log_probability, 0, 4).losses);
  // What PyTorch's own backward pass would begin with: ours begins with the loss.
  const int64_t sizes[] = {log_probability.size(1), log_probability.size(0),
                           2 * *std::max_element(written.begin(), written.end()) + 1};
  c.give(1, full(log_probability.dtype(), sizes, 0));
}
// PyTorch's gradient is that of logarithms which a softmax made: with the probabilities, of which
// the softmax makes nothing.
void ctc_backward(Call& c) {  // grad, log_probs, targets, input_lengths, target_lengths,
                              // neg_log_likelihood, log_alpha, blank, zero_infinity
  const V x = detach(c.value(1));
  const Aligned both = aligned(c, x, 1, 7);
  const V is_impossible = compare(TINY_EQ, c.value(5), INFINITY);
  const tiny_dtype dtype = x.dtype();
  const V weight = where(is_impossible, constant(dtype, 0), c.value(0));
  const V none = constant(dtype, c.flag(8) ? 0 : std::numeric_limits<double>::quiet_NaN());
  const int64_t column[] = {x.size(0), 1};
  const V is_heard = compare(TINY_LT, reshape(arange(TINY_INT64, x.size(0)), column), both.lengths);
  const V share = where(is_heard, where(is_impossible, none, c.value(0)), constant(dtype, 0));
  c.give(0, gradients(both.losses, weight, {&x, 1})[0] + unary(TINY_EXP, x) * unsqueeze(share, 2));
}

constexpr Row kSequences[] = {
    {"cumprod.out", running_product},
    {"_ctc_loss", ctc},
    {"_ctc_loss_backward", ctc_backward},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  add_rows(m, kSequences);
}

}  // namespace

}  // namespace tiny_torch
