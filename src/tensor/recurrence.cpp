#include "tensor/recurrence.h"

#include "base/error.h"
#include "tensor/create.h"
#include "tensor/joining.h"
#include "tensor/movement.h"

namespace tiny {

RecurrenceResult recur(const std::vector<Tensor>& sequences, int64_t axis, bool reverse,
                       std::vector<Tensor> state, const RecurrenceFunction& step) {
  require(!sequences.empty(), Status::InvalidArgument, "a recurrence over no sequence");
  const Ref<Context>& context = sequences[0].context_ref();
  const auto steps_of = [&](const Tensor& x) {
    return x.shape()[static_cast<size_t>(checked_axis(axis, x.rank()))];
  };
  const int64_t steps = steps_of(sequences[0]).value();
  require(steps >= 1 && steps <= kRecurrenceStepsMax, Status::Unsupported, "a sequence of ", steps,
          " steps; it takes 1 to ", kRecurrenceStepsMax);
  for (const Tensor& x : sequences)
    require(decide_equal(steps_of(x), steps), Status::Shape, "sequences of shapes ",
            sequences[0].shape(), " and ", x.shape(), " differ along axis ", axis);
  std::vector<Tensor> outputs(static_cast<size_t>(steps));
  for (int64_t n = 0; n < steps; ++n) {
    const int64_t t = reverse ? steps - 1 - n : n;
    RecurrenceStep now{{}, std::move(state), Tensor()};
    for (const Tensor& x : sequences)
      now.inputs.push_back(squeeze(slice_axis(x, axis, t, t + 1), {axis}));
    now.place = Tensor(context, context->graph().constant_int(kInt64, t));
    RecurrenceResult made = step(now);
    outputs[static_cast<size_t>(t)] = made.output;
    state = std::move(made.state);
  }
  return {stack(outputs, axis), std::move(state)};
}

}  // namespace tiny
