// One step of an optimiser: ai.onnx.preview.training.
#include <cmath>

#include "base/error.h"
#include "onnx/import/functions.h"
#include "onnx/import/table.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"

namespace tiny::onnx {

namespace {

constexpr const char* kDomain = "ai.onnx.preview.training";

// Inputs after the rate and the count: `kinds` lists of tensors, each as long as there are tensors
// to optimise; outputs: the values, then what is kept.
struct Lists {
  size_t count = 0;
  Tensor rate;
  Tensor updates;
};
Lists lists_of(const Call& c, size_t kinds) {
  c.check(c.inputs() > 2 && (c.inputs() - 2) % kinds == 0, "it has ", c.inputs(), " inputs");
  return {(c.inputs() - 2) / kinds, c.in(0), c.in(1)};
}

// The gradient with that of a penalty on the size of x.
Tensor regularized(const Call& c, const Tensor& x, const Tensor& gradient) {
  const float by = c.real_attr("norm_coefficient", 0);
  return by == 0 ? gradient : x * number(x, by) + gradient;
}

Tensors import_adagrad(Call& c) {
  const Lists l = lists_of(c, 3);
  const Tensor count = cast(l.updates, l.rate.dtype());
  const Tensor rate =
      l.rate / (number(count, 1) + count * number(count, c.real_attr("decay_factor", 0)));
  Tensors values, squares;
  for (size_t i = 0; i < l.count; ++i) {
    const Tensor& x = c.in(2 + i);
    const Tensor g = regularized(c, x, c.in(2 + l.count + i));
    const Tensor h = c.in(2 + 2 * l.count + i) + square(g);
    values.push_back(x - rate * g / (sqrt(h) + number(h, c.real_attr("epsilon", 0))));
    squares.push_back(h);
  }
  values.insert(values.end(), squares.begin(), squares.end());
  return values;
}

Tensors import_adam(Call& c) {
  const Lists l = lists_of(c, 4);
  const double alpha = c.real_attr("alpha", 0.9f), beta = c.real_attr("beta", 0.999f);
  const Tensor count = cast(l.updates, l.rate.dtype());
  const Tensor one = number(count, 1);
  const Tensor adjusted = l.rate * sqrt(one - pow(number(count, beta), count)) /
                          (one - pow(number(count, alpha), count));
  const Tensor rate = where(less(number(count, 0), count), adjusted, l.rate);
  Tensors values, means, squares;
  for (size_t i = 0; i < l.count; ++i) {
    const Tensor& x = c.in(2 + i);
    const Tensor g = regularized(c, x, c.in(2 + l.count + i));
    const Tensor v = c.in(2 + 2 * l.count + i) * number(g, alpha) + g * number(g, 1 - alpha);
    const Tensor h = c.in(2 + 3 * l.count + i) * number(g, beta) + square(g) * number(g, 1 - beta);
    const Tensor next = x - rate * v / (sqrt(h) + number(h, c.real_attr("epsilon", 0)));
    values.push_back(
        next * number(next, 1 - static_cast<double>(c.real_attr("norm_coefficient_post", 0))));
    means.push_back(v);
    squares.push_back(h);
  }
  values.insert(values.end(), means.begin(), means.end());
  values.insert(values.end(), squares.begin(), squares.end());
  return values;
}

Tensors import_momentum(Call& c) {
  const Lists l = lists_of(c, 3);
  const std::string mode = c.text_attr("mode", "");
  c.check(mode == "standard" || mode == "nesterov", "the attribute mode is \"", mode, "\"");
  const double alpha = c.real_attr("alpha", 0);
  Tensors values, momenta;
  for (size_t i = 0; i < l.count; ++i) {
    const Tensor& x = c.in(2 + i);
    const Tensor g = regularized(c, x, c.in(2 + l.count + i));
    // The first step takes the whole gradient.
    const Tensor beta = where(less(number_int(l.updates, 0), l.updates),
                              number(g, c.real_attr("beta", 1)), number(g, 1));
    const Tensor v = c.in(2 + 2 * l.count + i) * number(g, alpha) + g * beta;
    values.push_back(x - l.rate * (mode == "standard" ? v : g + v * number(v, alpha)));
    momenta.push_back(v);
  }
  values.insert(values.end(), momenta.begin(), momenta.end());
  return values;
}

// clang-format off
constexpr Row kRows[] = {
    {"Adagrad",  1, 1, import_adagrad,  0, nullptr, kDomain},
    {"Adam",     1, 1, import_adam,     0, nullptr, kDomain},
    {"Momentum", 1, 1, import_momentum, 0, nullptr, kDomain},
};
// clang-format on

}  // namespace

std::span<const Row> training_rows() {
  return kRows;
}

}  // namespace tiny::onnx
