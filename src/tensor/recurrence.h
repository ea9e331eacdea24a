// A state that every step makes a new one of: what recurrent layers, linear attention and the scans
// and loops of models share.  One step becomes nodes (ScanLoop, shape/shape.h), however many there
// are.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "tensor/tensor.h"

namespace tiny {

// Steps of one recurrence: each is launched.
inline constexpr int64_t kRecurrenceStepsMax = 65536;

struct Sequence {
  Tensor tensor;
  int64_t axis = 0;      // of its steps
  bool reverse = false;  // the last element comes first
};

// What a step sees: its elements of the sequences, which have no axis of steps, and the state
// before it.
struct RecurrenceStep {
  std::vector<Tensor> inputs;
  std::vector<Tensor> state;
};
// What a step makes: outputs, and as many tensors of a state as it was given.  Of all steps: each
// output along a new first axis, and the last state.
struct RecurrenceResult {
  std::vector<Tensor> outputs;
  std::vector<Tensor> state;
};
using RecurrenceFunction = std::function<RecurrenceResult(const RecurrenceStep&)>;

struct Recurrence {
  Dim steps;
  std::vector<Sequence> sequences;    // of so many steps each
  std::vector<Tensor> state;          // before the first step
  std::vector<uint8_t> is_backwards;  // by output: the last step's comes first; empty: none
};

// `step` is called once; or for each step, where states change their shapes or dtypes or a step has
// recurrences of its own.  It uses what it is given, and tensors that are the same in all steps.
// Steps whose number a run finds, which may be none, are rounds that the run counts.
// Error{Unsupported} for more than kRecurrenceStepsMax steps, Error{Shape} for a sequence of
// another length.
RecurrenceResult recur(const Ref<Context>& context, const Recurrence& recurrence,
                       const RecurrenceFunction& step);
// The same by calling `step` once; none where that cannot be.
std::optional<RecurrenceResult> recur_as_loop(const Ref<Context>& context,
                                              const Recurrence& recurrence,
                                              const RecurrenceFunction& step);

}  // namespace tiny
