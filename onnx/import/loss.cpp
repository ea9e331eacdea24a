// Losses of classification.
#include "base/error.h"
#include "onnx/import/functions.h"
#include "onnx/import/table.h"
#include "tensor/activation.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"

namespace tiny::onnx {

namespace {

// -log_probability[n, target[n, ..], ..] times the weight of the target's class; what is to be
// ignored weighs nothing.
Tensor likelihood_loss(const Call& c, const Tensor& log_probability) {
  const Tensor target = cast(c.in(1), kInt64);
  c.check(log_probability.rank() == target.rank() + 1 && target.rank() >= 1, "scores of shape ",
          log_probability.shape(), " for targets of shape ", target.shape());
  Tensor valid;
  Tensor classes = target;
  if (c.has_attribute("ignore_index")) {
    valid = not_equal(target, number_int(target, c.attr("ignore_index")));
    classes = where(valid, target, number_int(target, 0));
  }
  const Tensor chosen = squeeze(take_along_axis(log_probability, unsqueeze(classes, {1}), 1), {1});
  Tensor weight =
      c.has(2) ? gather(c.in(2), classes, 0) : full(c.context(), chosen.dtype(), chosen.shape(), 1);
  if (valid) weight = where(valid, weight, number(weight, 0.0));
  // A weight of 0 wins over an infinite loss.
  const Tensor loss =
      where(equal(weight, number(weight, 0.0)), number(chosen, 0.0), neg(chosen) * weight);
  const std::string reduction = c.text_attr("reduction", "mean");
  c.check(reduction == "none" || reduction == "sum" || reduction == "mean",
          "the attribute reduction is \"", reduction, "\"");
  if (reduction == "none") return loss;
  Ints axes;
  for (int64_t i = 0; i < loss.rank(); ++i) axes.push_back(i);
  const Tensor total = sum(loss, axes);
  return reduction == "sum" ? total : total / sum(weight, axes);
}

Tensors import_likelihood_loss(Call& c) {
  return {likelihood_loss(c, c.in(0))};
}

Tensors import_cross_entropy_loss(Call& c) {
  const Tensor log_probability = log_softmax(c.in(0), 1);
  return {likelihood_loss(c, log_probability), log_probability};
}

constexpr int64_t kNow = kNewestOpset;

// clang-format off
constexpr Row kRows[] = {
    {"NegativeLogLikelihoodLoss", 12, kNow, import_likelihood_loss},
    {"SoftmaxCrossEntropyLoss",   12, kNow, import_cross_entropy_loss},
};
// clang-format on

}  // namespace

std::span<const Row> loss_rows() {
  return kRows;
}

}  // namespace tiny::onnx
