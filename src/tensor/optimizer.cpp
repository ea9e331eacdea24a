#include "tensor/optimizer.h"

#include "tensor/create.h"
#include "tensor/elementwise.h"

namespace tiny {

namespace {

// The gradient with that of a penalty on the size of the value.
Tensor regularized(const Tensor& value, const Tensor& gradient, double weight_decay) {
  return weight_decay == 0 ? gradient : value * number(value, weight_decay) + gradient;
}

}  // namespace

Adagrad adagrad(const Adagrad& last, const Tensor& gradient, const Tensor& rate,
                const Tensor& count, const AdagradOptions& options) {
  const Tensor steps = cast(count, rate.dtype());
  const Tensor decayed = rate / (number(steps, 1) + steps * number(steps, options.decay_factor));
  const Tensor g = regularized(last.value, gradient, options.weight_decay);
  const Tensor h = last.squares + square(g);
  return {last.value - decayed * g / (sqrt(h) + number(h, options.epsilon)), h};
}

Adam adam(const Adam& last, const Tensor& gradient, const Tensor& rate, const Tensor& count,
          const AdamOptions& options) {
  const Tensor steps = cast(count, rate.dtype());
  const Tensor one = number(steps, 1);
  // What the means lack is a power of what stays; the first step has nothing to divide by.
  const Tensor adjusted = rate * sqrt(one - pow(number(steps, options.beta), steps)) /
                          (one - pow(number(steps, options.alpha), steps));
  const Tensor step = where(less(number(steps, 0), steps), adjusted, rate);
  const Tensor g = regularized(last.value, gradient, options.weight_decay);
  const Tensor v = last.mean * number(g, options.alpha) + g * number(g, 1 - options.alpha);
  const Tensor h = last.squares * number(g, options.beta) + square(g) * number(g, 1 - options.beta);
  const Tensor next = last.value - step * v / (sqrt(h) + number(h, options.epsilon));
  return {next * number(next, 1 - options.weight_decay_after), v, h};
}

Momentum momentum(const Momentum& last, const Tensor& gradient, const Tensor& rate,
                  const Tensor& count, const MomentumOptions& options) {
  const Tensor g = regularized(last.value, gradient, options.weight_decay);
  const Tensor beta =
      where(less(number_int(count, 0), count), number(g, options.beta), number(g, 1));
  const Tensor v = last.momentum * number(g, options.alpha) + g * beta;
  const Tensor step = options.nesterov ? g + v * number(v, options.alpha) : v;
  return {last.value - rate * step, v};
}

}  // namespace tiny
