// One step of an optimiser, for one tensor: new values out of old ones, nothing is written.  `rate`
// is a scalar, `count` the number of steps that were taken, an integer scalar.
#pragma once

#include "tensor/tensor.h"

namespace tiny {

struct AdagradOptions {
  double decay_factor = 0;  // the rate is divided by 1 + count * decay_factor
  double epsilon = 0;
  double weight_decay = 0;  // times the value, added to the gradient
};
struct Adagrad {
  Tensor value;
  Tensor squares;  // the sum of the gradients' squares
};
// value - rate * gradient / (sqrt(squares) + epsilon).
Adagrad adagrad(const Adagrad& last, const Tensor& gradient, const Tensor& rate,
                const Tensor& count, const AdagradOptions& options);

struct AdamOptions {
  double alpha = 0.9;   // how much of the mean stays
  double beta = 0.999;  // and of the squares
  double epsilon = 0;
  double weight_decay = 0;        // times the value, added to the gradient
  double weight_decay_after = 0;  // this share of the new value is taken away
};
struct Adam {
  Tensor value;
  Tensor mean;     // of the gradients, those long ago less
  Tensor squares;  // the mean of their squares
};
// value - rate * mean / (sqrt(squares) + epsilon); both means are made larger by what they lack
// after `count` steps.
Adam adam(const Adam& last, const Tensor& gradient, const Tensor& rate, const Tensor& count,
          const AdamOptions& options);

struct MomentumOptions {
  double alpha = 0;         // how much of the momentum stays
  double beta = 1;          // how much of the gradient is added; in the first step all of it
  double weight_decay = 0;  // times the value, added to the gradient
  bool nesterov = false;    // the step looks ahead: gradient + alpha * momentum
};
struct Momentum {
  Tensor value;
  Tensor momentum;
};
// value - rate * momentum.
Momentum momentum(const Momentum& last, const Tensor& gradient, const Tensor& rate,
                  const Tensor& count, const MomentumOptions& options);

}  // namespace tiny
