#include "tensor/radix_sort.h"

#include "base/checked.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/movement.h"
#include "tensor/recurrence.h"
#include "tensor/reduce.h"
#include "tensor/scan.h"
#include "tensor/scatter.h"

namespace tiny {

Tensor ascending_places(const Tensor& keys) {
  const Ref<Context>& context = keys.context_ref();
  const Shape shape = keys.shape().from(1);
  const int64_t last = std::ssize(shape) - 1;
  const int64_t bits = keys.dtype().bits();
  const int64_t columns = keys.shape()[0].value();
  const int64_t steps = checked_mul(columns, bits, "the digits of the keys");
  // From the last column's lowest digit on: each step keeps the order of those that have the same.
  const Tensor digits = arange(context, kInt64, steps);
  const Tensor width = number_int(digits, bits);
  const Tensor column = sub(number_int(digits, columns - 1), floor_div(digits, width));
  const Recurrence recurrence{
      steps,
      {{column}, {cast(floor_mod(digits, width), keys.dtype())}},
      {contiguous(expand(positions(context, kInt64, shape.back(), last, last + 1), shape))},
      {}};
  const RecurrenceFunction step = [&](const RecurrenceStep& now) {
    const Tensor& order = now.state[0];
    const Tensor key = take_along_axis(gather(keys, now.inputs[0], 0), order, last);
    const Tensor digit = bit_and(shift_right(key, now.inputs[1]), number_int(key, 1));
    const Tensor is_zero = equal(digit, number_int(key, 0));
    const Tensor zeros = contiguous(cast(is_zero, kInt64));
    const Tensor before = cumsum(zeros, last, true);
    const Tensor place = positions(context, kInt64, shape.back(), last, last + 1);
    // Those with a one stand behind all with a zero.
    const Tensor behind = add(sum(zeros, {last}, true), sub(place, before));
    const Tensor next = scatter_elements(full(context, kInt64, shape, 0),
                                         where(is_zero, before, behind), order, last);
    return RecurrenceResult{{}, {next}};
  };
  return recur(context, recurrence, step).state[0];
}

}  // namespace tiny
