// The loss of sequences whose alignment with their targets is not known.
#pragma once

#include "tensor/loss.h"

namespace tiny {

struct CtcOptions {
  int64_t blank = 0;                              // the class that stands for no label
  LossReduction reduction = LossReduction::Mean;  // each is divided by its target's length first
  bool zero_infinity = false;                     // targets that do not fit weigh nothing
};
// Connectionist temporal classification (Graves et al. 2006): -log of the probability that the
// steps spell the target, blanks and repetitions left out.  log_probability is [steps, batch,
// classes], `target` integers [batch, labels], of which the first target_lengths[b] count, as do
// the first input_lengths[b] of the steps; both are integers [batch].
Tensor ctc_loss(const Tensor& log_probability, const Tensor& target, const Tensor& input_lengths,
                const Tensor& target_lengths, const CtcOptions& options = {});

}  // namespace tiny
