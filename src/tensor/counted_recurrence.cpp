#include "tensor/counted_recurrence.h"

#include <utility>

#include "tensor/control.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/movement.h"

namespace tiny {

RecurrenceResult recur_in_run(const Ref<Context>& context, const Recurrence& r,
                              const RecurrenceFunction& step) {
  const Tensor steps = size_tensor(context, r.steps), one = full_bits(context, kInt64, {}, 1);
  const auto round = [&](const Tensor& number, const std::vector<Tensor>& state) {
    RecurrenceStep now{{}, state};
    const Tensor from_end = steps - number - one;
    for (const Sequence& s : r.sequences) {
      const Tensor place = reshape(s.reverse ? from_end : number, {1});
      now.inputs.push_back(squeeze(gather(s.tensor, place, s.axis), {s.axis}));
    }
    RecurrenceResult made = step(now);
    return Round{std::move(made.state), full(context, kBool, {}, 1), std::move(made.outputs)};
  };
  Dependences known;
  Rounds made = collect(steps, r.steps, r.state, known, round);
  for (size_t i = 0; i < made.collected.size(); ++i)
    if (!r.is_backwards.empty() && r.is_backwards[i])
      made.collected[i] = flip(made.collected[i], {0});
  return {std::move(made.collected), std::move(made.state)};
}

}  // namespace tiny
