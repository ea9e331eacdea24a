#include "tensor/loss.h"

#include <limits>

#include "base/error.h"
#include "tensor/activation.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/movement.h"
#include "tensor/promotion.h"
#include "tensor/reduce.h"

namespace tiny {

Tensor reduced(const Tensor& losses, LossReduction reduction) {
  const Ints axes = every_axis(losses.rank());
  switch (reduction) {
    case LossReduction::None:
      return losses;
    case LossReduction::Sum:
      return sum(losses, axes);
    case LossReduction::Mean:
      return mean(losses, axes);
  }
  throw_error(Status::Internal, "a reduction of losses that is none");
}

namespace {

void require_floats(const char* name, const Tensor& x, const Tensor& target) {
  require(x.dtype().is_float() && target.dtype().is_float(), Status::DType, name, ": values of ",
          x.dtype(), " and targets of ", target.dtype(), "; wanted floats");
}

void require_weight(const char* name, const Tensor& weight, const Tensor& rows) {
  if (!weight) return;
  const Dim& classes = rows.shape()[1];
  require(weight.rank() == 1 && (!classes.is_const() || !weight.shape()[0].is_const() ||
                                 weight.shape()[0] == classes),
          Status::Shape, name, ": weights of shape ", weight.shape(), "; wanted [", classes,
          "], one for each class");
}

// What nll_loss knows of its targets.
struct Targets {
  Tensor classes;  // where nothing is ignored; 0 elsewhere
  Tensor valid;    // bool, or none: all are
  Tensor weight;   // of each target, 0 where it is ignored
};
Targets targets_of(const Tensor& target, const Tensor& like, const LossOptions& options) {
  // 64-bit numbers would halve the lanes of all that is computed beside them.
  const int64_t ignored = options.ignore_index.value_or(0);
  const bool is_short = (target.dtype().bytes() < 4 || target.dtype() == kInt32) &&
                        ignored == static_cast<int32_t>(ignored);
  Targets found{cast(target, is_short ? kInt32 : kInt64), {}, {}};
  if (options.ignore_index) {
    found.valid = not_equal(found.classes, number_int(found.classes, *options.ignore_index));
    found.classes = where(found.valid, found.classes, number_int(found.classes, 0));
  }
  found.weight = options.weight ? gather(options.weight, found.classes, 0)
                                : full(like.context_ref(), like.dtype(), target.shape(), 1);
  if (found.valid) found.weight = where(found.valid, found.weight, number(found.weight, 0));
  return found;
}

// The element of each row along axis 1 that `classes` names.  A sum of which all but one term are
// 0: the schedule reads the one, and the gradient is made where it is added up, not scattered into
// zeros that are stored first.  A class that there is not is found by looking it up.
Tensor of_class(const Tensor& rows, const Tensor& classes) {
  Shape along(static_cast<size_t>(rows.rank()), Dim(1));
  along[1] = rows.shape()[1];
  const bool is_short = upper_bound(rows.shape()[1]) <= INT32_MAX;
  const Tensor each = arange(rows.context_ref(), is_short ? kInt32 : kInt64, rows.shape()[1]);
  const Tensor named = equal(reshape(each, along), unsqueeze(gather(each, classes, 0), {1}));
  return sum(where(named, rows, number(rows, 0)), {1});
}

// The weights of classes, along axis 1 of as many axes as `like` has.
Tensor class_weights(const Tensor& weight, const Tensor& like) {
  Shape shape(static_cast<size_t>(like.rank()), Dim(1));
  shape[1] = weight.shape()[0];
  return reshape(weight, shape);
}

Tensor cross_entropy_of_shares(const Tensor& log_probability, const Tensor& target,
                               const LossOptions& options, double label_smoothing) {
  require(Shape(target.shape()) == Shape(log_probability.shape()), Status::Shape,
          "cross_entropy: shares of shape ", target.shape(), " for classes of shape ",
          log_probability.shape());
  require(!options.ignore_index, Status::InvalidArgument,
          "cross_entropy: a class to be ignored, among shares");
  Tensor share = target;
  if (label_smoothing != 0) {
    const Tensor classes = Tensor::weak_int(target.context_ref(), target.shape()[1]);
    share = share * number(share, 1 - label_smoothing) + number(share, label_smoothing) / classes;
  }
  Tensor losses = neg(log_probability) * share;
  if (options.weight) losses = losses * class_weights(options.weight, losses);
  return reduced(sum(losses, {1}), options.reduction);
}

}  // namespace

Tensor nll_loss(const Tensor& log_probability, const Tensor& given, const LossOptions& options) {
  require(given.dtype().is_int(), Status::DType, "nll_loss: targets of ", given.dtype(),
          "; wanted integers");
  require(given.rank() >= 1 && log_probability.rank() == given.rank() + 1, Status::Shape,
          "nll_loss: targets of shape ", given.shape(), " for classes of shape ",
          log_probability.shape(), "; wanted the same without axis 1");
  for (size_t i = 0; i < given.shape().size(); ++i) {
    const Dim& size = log_probability.shape()[i == 0 ? 0 : i + 1];
    require(!size.is_const() || !given.shape()[i].is_const() || given.shape()[i] == size,
            Status::Shape, "nll_loss: targets of shape ", given.shape(), " for classes of shape ",
            log_probability.shape(), "; wanted the same without axis 1");
  }
  require_weight("nll_loss", options.weight, log_probability);
  const Targets targets = targets_of(given, log_probability, options);
  const Tensor chosen = of_class(log_probability, targets.classes);
  const Tensor& weight = targets.weight;
  // A weight of 0 wins over an infinite loss.
  const Tensor loss =
      where(equal(weight, number(weight, 0)), number(chosen, 0), neg(chosen) * weight);
  if (options.reduction == LossReduction::None) return loss;
  const Ints axes = every_axis(loss.rank());
  const Tensor total = sum(loss, axes);
  return options.reduction == LossReduction::Sum ? total : total / sum(weight, axes);
}

Tensor cross_entropy(const Tensor& logits, const Tensor& target, const LossOptions& options,
                     double label_smoothing) {
  require(logits.dtype().is_float(), Status::DType, "cross_entropy: logits of ", logits.dtype(),
          "; wanted floats");
  require(logits.rank() >= 2, Status::Shape, "cross_entropy: logits of shape ", logits.shape(),
          "; wanted [batch, classes, ..]");
  require(label_smoothing >= 0 && label_smoothing <= 1, Status::InvalidArgument,
          "cross_entropy: label_smoothing is ", label_smoothing, "; wanted 0 to 1");
  require_weight("cross_entropy", options.weight, logits);
  const Tensor log_probability = log_softmax(logits, 1);
  if (target.dtype().is_float())
    return cross_entropy_of_shares(log_probability, target, options, label_smoothing);
  const Tensor sharp = nll_loss(log_probability, target, options);
  if (label_smoothing == 0) return sharp;
  // The same share of every class's loss, each with its own weight.
  const Targets targets = targets_of(target, log_probability, options);
  Tensor each = neg(log_probability);
  if (options.weight) each = each * class_weights(options.weight, each);
  Tensor flat = sum(each, {1});
  if (targets.valid) flat = where(targets.valid, flat, number(flat, 0));
  const Ints axes = every_axis(flat.rank());
  if (options.reduction != LossReduction::None) flat = sum(flat, axes);
  if (options.reduction == LossReduction::Mean) flat = flat / sum(targets.weight, axes);
  const Tensor classes = Tensor::weak_int(logits.context_ref(), logits.shape()[1]);
  return sharp * number(sharp, 1 - label_smoothing) +
         flat * number(flat, label_smoothing) / classes;
}

Tensor mse_loss(const Tensor& x, const Tensor& target, LossReduction reduction) {
  require_floats("mse_loss", x, target);
  return reduced(square(x - target), reduction);
}

Tensor l1_loss(const Tensor& x, const Tensor& target, LossReduction reduction) {
  require_floats("l1_loss", x, target);
  return reduced(abs(x - target), reduction);
}

Tensor smooth_l1_loss(const Tensor& x, const Tensor& target, LossReduction reduction, double beta) {
  require_floats("smooth_l1_loss", x, target);
  require(beta >= 0, Status::InvalidArgument, "smooth_l1_loss: beta is ", beta);
  const Tensor distance = abs(x - target);
  if (beta == 0) return reduced(distance, reduction);
  const Tensor near = square(distance) * number(distance, 0.5 / beta);
  const Tensor far = distance - number(distance, beta / 2);
  return reduced(where(less(distance, number(distance, beta)), near, far), reduction);
}

Tensor huber_loss(const Tensor& x, const Tensor& target, LossReduction reduction, double delta) {
  require_floats("huber_loss", x, target);
  require(delta > 0, Status::InvalidArgument, "huber_loss: delta is ", delta,
          "; wanted a positive number");
  const Tensor loss = smooth_l1_loss(x, target, reduction, delta);
  return loss * number(loss, delta);
}

namespace {

// The logarithm of a probability, at least -100; its slope is a number everywhere.
Tensor log_at_least(const Tensor& p) {
  constexpr double kLeast = -100;
  // Below it float32 has but a few digits: e^-87, no probability that anything told apart.
  const Tensor normal = number(p, static_cast<double>(std::numeric_limits<float>::min()));
  return where(less(p, normal), number(p, kLeast), log(maximum(p, normal)));
}

}  // namespace

Tensor binary_cross_entropy(const Tensor& p, const Tensor& target, LossReduction reduction) {
  require_floats("binary_cross_entropy", p, target);
  const DType dtype = accumulator_dtype(p.dtype());
  const Tensor share = cast(p, dtype), wanted = cast(target, dtype), one = number(share, 1);
  const Tensor losses = wanted * log_at_least(share) + (one - wanted) * log_at_least(one - share);
  return cast(reduced(neg(losses), reduction), p.dtype());
}

Tensor binary_cross_entropy_with_logits(const Tensor& x, const Tensor& target,
                                        LossReduction reduction, const Tensor& positive_weight) {
  require_floats("binary_cross_entropy_with_logits", x, target);
  // log(1 + exp(-x)), without overflow on either side.
  const Tensor one = number(x, 1), zero = number(x, 0);
  const Tensor softplus = maximum(neg(x), zero) + log(one + exp(neg(abs(x))));
  Tensor weight = one;
  if (positive_weight) weight = (positive_weight - one) * target + one;
  return reduced((one - target) * x + weight * softplus, reduction);
}

Tensor kl_div(const Tensor& x, const Tensor& target, LossReduction reduction, bool log_target) {
  require_floats("kl_div", x, target);
  if (log_target) return reduced(exp(target) * (target - x), reduction);
  const Tensor zero = number(target, 0);
  const Tensor logarithm = log(where(less(zero, target), target, number(target, 1)));
  return reduced(where(less(zero, target), target * (logarithm - x), zero), reduction);
}

}  // namespace tiny
