// Losses of classification.
#include "tensor/loss.h"

#include "base/error.h"
#include "onnx/import/functions.h"
#include "onnx/import/table.h"
#include "tensor/activation.h"

namespace tiny::onnx {

namespace {

constexpr Named<LossReduction> kReductions[] = {
    {"none", LossReduction::None}, {"sum", LossReduction::Sum}, {"mean", LossReduction::Mean}};

LossOptions loss_options(const Call& c) {
  LossOptions options;
  options.weight = c.in_or(2, Tensor());
  if (c.has_attribute("ignore_index")) options.ignore_index = c.attr("ignore_index");
  options.reduction = named_attr<LossReduction>(c, "reduction", "mean", kReductions);
  return options;
}

Tensors import_likelihood_loss(Call& c) {
  return {nll_loss(c.in(0), c.in(1), loss_options(c))};
}

// The logarithms of the probabilities are an output too.
Tensors import_cross_entropy_loss(Call& c) {
  const Tensor log_probability = log_softmax(c.in(0), 1);
  return {nll_loss(log_probability, c.in(1), loss_options(c)), log_probability};
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
