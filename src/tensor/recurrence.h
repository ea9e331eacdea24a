// A state that every step of a sequence makes a new one of: what recurrent layers, linear attention
// and other recurrences share.  Every step becomes nodes of its own.
#pragma once

#include <functional>
#include <vector>

#include "tensor/tensor.h"

namespace tiny {

// Steps of one sequence; each becomes a copy of the step's nodes.
inline constexpr int64_t kRecurrenceStepsMax = 4096;

// What a step sees: its elements of the sequences, which have no axis of steps, the state before
// it, and its place in the sequence, an int64 scalar.
struct RecurrenceStep {
  std::vector<Tensor> inputs;
  std::vector<Tensor> state;
  Tensor place;
};
// What it makes: an output, and as many tensors of a state as it was given.
struct RecurrenceResult {
  Tensor output;
  std::vector<Tensor> state;
};
using RecurrenceFunction = std::function<RecurrenceResult(const RecurrenceStep&)>;

// The outputs of all steps along `axis`, in the order of the sequence, and the last state.
// `sequences` have the steps along `axis`, as many each; `reverse` takes the last first.
// Error{Unsupported} for no steps and more than kRecurrenceStepsMax.
RecurrenceResult recur(const std::vector<Tensor>& sequences, int64_t axis, bool reverse,
                       std::vector<Tensor> state, const RecurrenceFunction& step);

}  // namespace tiny
