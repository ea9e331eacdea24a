// Losses of classification.
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

}  // namespace tiny
