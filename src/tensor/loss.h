// Losses, by PyTorch's names and definitions (torch.nn.functional).
#pragma once

#include <optional>

#include "tensor/tensor.h"

namespace tiny {

// What becomes of the losses of all targets.
enum class LossReduction : uint8_t {
  None,  // nothing
  Sum,
  Mean,  // the sum over that of the targets' weights
};

Tensor reduced(const Tensor& losses, LossReduction reduction);

struct LossOptions {
  Tensor weight = {};                        // of each class, [classes]; none: 1
  std::optional<int64_t> ignore_index = {};  // a target that weighs nothing, a class or not
  LossReduction reduction = LossReduction::Mean;
};

// -log_probability[n, target[n, ..], ..] * weight[target[n, ..]]: log_probability is [batch,
// classes, ..], target integers [batch, ..], which lie in 0 .. classes - 1 or count from the end;
// others end the run with Error{Index}.
Tensor nll_loss(const Tensor& log_probability, const Tensor& target,
                const LossOptions& options = {});

// Of logits [batch, classes, ..]: nll_loss of their logarithmic softmax, for targets that are
// integers [batch, ..]; or, for targets that are floats of the logits' shape, sum over the classes
// of -log_softmax * target * weight, whose mean is over the batch and the axes behind the classes.
// `label_smoothing`, a share, goes to all classes alike.
Tensor cross_entropy(const Tensor& logits, const Tensor& target, const LossOptions& options = {},
                     double label_smoothing = 0);

// Element by element; `reduction` over all.  Both broadcast.
Tensor mse_loss(const Tensor& x, const Tensor& target, LossReduction reduction);
Tensor l1_loss(const Tensor& x, const Tensor& target, LossReduction reduction);
// Half of the square below `beta`, divided by it, and the distance less half of `beta` beyond.
Tensor smooth_l1_loss(const Tensor& x, const Tensor& target, LossReduction reduction,
                      double beta = 1);
// smooth_l1_loss times delta, which stands for beta.
Tensor huber_loss(const Tensor& x, const Tensor& target, LossReduction reduction, double delta = 1);
// Of probabilities; logarithms are at least -100.
Tensor binary_cross_entropy(const Tensor& p, const Tensor& target, LossReduction reduction);
// Of what a sigmoid makes probabilities of; what is wanted weighs `positive_weight` (broadcasts;
// may be none).
Tensor binary_cross_entropy_with_logits(const Tensor& x, const Tensor& target,
                                        LossReduction reduction,
                                        const Tensor& positive_weight = Tensor());
// target * (log(target) - x), 0 where the target is: x has logarithms, as has `target` if
// `log_target`.
Tensor kl_div(const Tensor& x, const Tensor& target, LossReduction reduction,
              bool log_target = false);

}  // namespace tiny
