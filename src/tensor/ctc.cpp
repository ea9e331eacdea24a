#include "tensor/ctc.h"

#include <limits>
#include <vector>

#include "base/error.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/joining.h"
#include "tensor/movement.h"
#include "tensor/recurrence.h"
#include "tensor/reduce.h"

namespace tiny {

namespace {

// The logarithm of no probability: finite, so that differences of it are numbers.
constexpr double kNever = -1e30;
// Sums of logarithms of probabilities never come near it.
constexpr double kFits = 1e29;

void check(const Tensor& log_probability, const Tensor& target, const Tensor& input_lengths,
           const Tensor& target_lengths, const CtcOptions& options) {
  require(log_probability.rank() == 3 && log_probability.dtype().is_float(), Status::Shape,
          "ctc_loss of ", log_probability.dtype(), " of shape ", log_probability.shape(),
          "; wanted floats, of steps, batch and classes");
  const Dim batch = log_probability.shape()[1];
  require(target.rank() == 2 && decide_equal(target.shape()[0], batch), Status::Shape,
          "ctc_loss: targets of shape ", target.shape(), "; wanted a row of labels for each of ",
          batch);
  for (const Tensor* lengths : {&input_lengths, &target_lengths})
    require(Shape(lengths->shape()) == Shape{batch}, Status::Shape, "ctc_loss: lengths of shape ",
            lengths->shape(), "; wanted one for each of ", batch);
  for (const Tensor* x : {&target, &input_lengths, &target_lengths})
    require(x->dtype().is_int(), Status::DType, "ctc_loss: labels or lengths of ", x->dtype(),
            "; wanted integers");
  const Dim classes = log_probability.shape()[2];
  require(classes.is_const() && options.blank >= 0 && options.blank < classes.value(),
          Status::InvalidArgument, "ctc_loss: the blank is class ", options.blank, " of ", classes);
}

// log(exp(a) + exp(b)).
Tensor log_add(const Tensor& a, const Tensor& b) {
  const Tensor most = maximum(a, b);
  const Tensor one = number(a, 1);
  return most + log(one + exp(minimum(a, b) - most));
}

// Each element of the last axis `by` places later, with kNever before.
Tensor later(const Tensor& a, int64_t by) {
  return pad(slice_axis(a, 1, 0, a.shape()[1] - Dim(by)), {0, by}, {0, 0}, kNever);
}

// Blank, label, blank, .. label, blank: [batch, 2 * labels + 1].
Tensor with_blanks(const Tensor& target, int64_t blank) {
  const Tensor label = unsqueeze(target, {2});
  const Tensor between =
      full(label.context_ref(), label.dtype(), label.shape(), static_cast<double>(blank));
  const Tensor pairs = flatten(concat(std::vector{between, label}, 2), 1);
  return pad(pairs, {0, 0}, {0, 1}, static_cast<double>(blank));
}

// The element lengths[b] of row b, 0 for kNever where there is none.
Tensor at(const Tensor& rows, const Tensor& index) {
  const Tensor inside = maximum(index, number_int(index, 0));
  const Tensor found = squeeze(take_along_axis(rows, unsqueeze(inside, {1}), 1), {1});
  return where(less(index, number_int(index, 0)), number(found, kNever), found);
}

}  // namespace

Tensor ctc_loss(const Tensor& log_probability, const Tensor& target, const Tensor& input_lengths,
                const Tensor& target_lengths, const CtcOptions& options) {
  check(log_probability, target, input_lengths, target_lengths, options);
  const Ref<Context>& context = log_probability.context_ref();
  const Dim steps = log_probability.shape()[0];
  const Tensor symbols = with_blanks(cast(target, kInt64), options.blank);
  const Dim places = symbols.shape()[1];
  // A label may follow the one before it without a blank where the two differ.
  const Tensor is_label = not_equal(symbols, number_int(symbols, options.blank));
  const Tensor before = pad(slice_axis(symbols, 1, 0, places - Dim(2)), {0, 2}, {0, 0},
                            static_cast<double>(options.blank));
  const Tensor may_skip = places.is(1) ? Tensor() : bit_and(is_label, not_equal(symbols, before));
  const Tensor wide =
      log_probability.dtype() == kFloat64 ? log_probability : cast(log_probability, kFloat32);
  const Tensor emitted = take_along_axis(
      wide, expand(unsqueeze(symbols, {0}), {steps, symbols.shape()[0], places}), 2);
  const Tensor time = arange(context, kInt64, steps);
  const Tensor last_step = cast(input_lengths, kInt64);
  const Tensor count = arange(context, kInt64, places);
  const Tensor start =
      expand(where(equal(count, number_int(count, 0)), number(wide, 0), number(wide, kNever)),
             symbols.shape());
  const Tensor never = number(wide, kNever);
  const RecurrenceResult run =
      recur(context, {steps, {{emitted}, {time}}, {contiguous(start)}, {}},
            [&](const RecurrenceStep& step) {
              const Tensor& last = step.state[0];
              Tensor from = last;
              if (may_skip) {
                from = log_add(last, later(last, 1));
                from = log_add(from, where(may_skip, later(last, 2), never));
              }
              const Tensor next = maximum(from + step.inputs[0], never);
              const Tensor counts = unsqueeze(less(step.inputs[1], last_step), {1});
              return RecurrenceResult{{}, {where(counts, next, last)}};
            });
  const Tensor length = cast(target_lengths, kInt64);
  const Tensor end = length * number_int(length, 2);
  const Tensor total = log_add(at(run.state[0], end), at(run.state[0], end - number_int(end, 1)));
  const Tensor fits = less(number(total, -kFits), total);
  const double infinity = options.zero_infinity ? 0 : std::numeric_limits<double>::infinity();
  Tensor losses = where(fits, neg(total), number(total, infinity));
  if (options.reduction == LossReduction::Mean)
    losses = losses / cast(maximum(length, number_int(length, 1)), losses.dtype());
  return cast(reduced(losses, options.reduction), log_probability.dtype());
}

}  // namespace tiny
