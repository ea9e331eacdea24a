#include "tensor/loss.h"

#include "base/error.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"

namespace tiny {

Tensor nll_loss(const Tensor& log_probability, const Tensor& given, const LossOptions& options) {
  require(given.dtype().is_int(), Status::DType, "nll_loss: targets of ", given.dtype(),
          "; wanted integers");
  require(given.rank() >= 1 && log_probability.rank() == given.rank() + 1, Status::Shape,
          "nll_loss: targets of shape ", given.shape(), " for classes of shape ",
          log_probability.shape(), "; wanted the same without axis 1");
  const Tensor target = cast(given, kInt64);
  Tensor valid;
  Tensor classes = target;
  if (options.ignore_index) {
    valid = not_equal(target, number_int(target, *options.ignore_index));
    classes = where(valid, target, number_int(target, 0));
  }
  const Tensor chosen = squeeze(take_along_axis(log_probability, unsqueeze(classes, {1}), 1), {1});
  Tensor weight = options.weight ? gather(options.weight, classes, 0)
                                 : full(chosen.context_ref(), chosen.dtype(), chosen.shape(), 1);
  if (valid) weight = where(valid, weight, number(weight, 0));
  // A weight of 0 wins over an infinite loss.
  const Tensor loss =
      where(equal(weight, number(weight, 0)), number(chosen, 0), neg(chosen) * weight);
  if (options.reduction == LossReduction::None) return loss;
  const Ints axes = every_axis(loss.rank());
  const Tensor total = sum(loss, axes);
  return options.reduction == LossReduction::Sum ? total : total / sum(weight, axes);
}

}  // namespace tiny
