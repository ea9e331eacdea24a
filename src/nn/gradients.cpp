#include "nn/gradients.h"

#include "base/error.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"
#include "tensor/value.h"

namespace tiny {

namespace {

// Keeps a small norm from dividing by 0 (torch.nn.utils.clip_grad_norm_).
constexpr double kNormEpsilon = 1e-6;

// The factor of losses, and one over it, are normal numbers.
constexpr double kFactorMax = 0x1p126;

// Of at least 32 bits.
Tensor widened(const Tensor& x) {
  return x.dtype().bits() < 32 ? cast(x, kFloat32) : x;
}

template <class F>
std::vector<Tensor> each(std::span<const Tensor> gradients, F change) {
  std::vector<Tensor> out;
  for (const Tensor& g : gradients) out.push_back(g ? change(g) : Tensor());
  return out;
}

// A number of one tensor's dtype, out of a float32 scalar.
Tensor factor_for(const Tensor& gradient, const Tensor& factor) {
  return cast(factor, gradient.dtype());
}

}  // namespace

Tensor gradient_norm(std::span<const Tensor> gradients) {
  Tensor total;
  for (const Tensor& g : gradients) {
    if (!g) continue;
    const Tensor squares = sum(square(cast(g, kFloat32)), every_axis(g.rank()));
    total = total ? total + squares : squares;
  }
  require(static_cast<bool>(total), Status::InvalidArgument, "the norm of no gradient");
  return sqrt(total);
}

std::vector<Tensor> clip_by_norm(std::span<const Tensor> gradients, const Tensor& norm,
                                 double most) {
  require(most > 0, Status::InvalidArgument, "a norm of at most ", most,
          "; wanted a positive number");
  const Tensor one = number(norm, 1);
  const Tensor share = number(norm, most) / (norm + number(norm, kNormEpsilon));
  const Tensor factor = contiguous(minimum(share, one));
  return each(gradients, [&](const Tensor& g) { return g * factor_for(g, factor); });
}

std::vector<Tensor> clip_by_value(std::span<const Tensor> gradients, double most) {
  require(most > 0, Status::InvalidArgument, "values of at most ", most,
          "; wanted a positive number");
  return each(gradients, [&](const Tensor& g) {
    return maximum(minimum(g, number(g, most)), number(g, -most));
  });
}

LossScaler::LossScaler(const Ref<Context>& context, double factor, int64_t interval)
    : factor_(full(context, kFloat32, {}, factor)),
      good_steps_(full(context, kInt64, {}, 0)),
      interval_(interval) {
  require(factor > 0, Status::InvalidArgument, "losses scaled by ", factor);
  require(interval > 0, Status::InvalidArgument, "a larger factor after ", interval, " steps");
  Tensor* const both[] = {&factor_, &good_steps_};
  for (Tensor* t : both) own_memory(*t, true);
  realize(both);
}

// The factor is no number of 16 bits, and neither are gradients without it.
Tensor LossScaler::scaled(const Tensor& loss) const {
  require(loss.dtype().is_float(), Status::DType, "a loss of ", loss.dtype(), "; wanted floats");
  const Tensor wide = widened(loss);
  return wide * factor_for(wide, factor_);
}

LossScaler::Unscaled LossScaler::unscale(std::span<const Tensor> gradients) {
  Tensor bad;
  for (const Tensor& g : gradients) {
    if (!g) continue;
    // Not finite: it is not 0 times itself.
    const Tensor some = any(not_equal(g - g, number(g, 0)), every_axis(g.rank()));
    bad = bad ? bit_or(bad, some) : some;
  }
  require(static_cast<bool>(bad), Status::InvalidArgument, "no gradient to be unscaled");
  skip_ = bad = contiguous(bad);
  const Tensor inverse = contiguous(reciprocal(factor_));
  Unscaled out{each(gradients,
                    [&](const Tensor& g) {
                      const Tensor wide = widened(g);
                      return wide * factor_for(wide, inverse);
                    }),
               bad};
  const Tensor none = number_int(good_steps_, 0);
  const Tensor steps = where(bad, none, good_steps_ + number_int(good_steps_, 1));
  const Tensor is_due = equal(steps, number_int(steps, interval_));
  const Tensor larger = minimum(factor_ * number(factor_, 2), number(factor_, kFactorMax));
  const Tensor smaller = maximum(factor_ * number(factor_, 0.5), number(factor_, 1 / kFactorMax));
  const Tensor next = where(bad, smaller, where(is_due, larger, factor_));
  assign(good_steps_, where(is_due, none, steps));
  assign(factor_, next);
  return out;
}

}  // namespace tiny
