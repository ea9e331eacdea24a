// Definitions of activations and statistics.
#include <numbers>

#include "tensor/activation.h"
#include "tensor/elementwise.h"
#include "tensor/normalization.h"
#include "tests/tensor/function_cases/case.h"

namespace tiny::function_cases {

static Case pointwise(const Maker& make, Tensor (*f)(const Tensor&), double (*want)(double)) {
  const Array a = sample({40});
  return {f(make(a)), generate({40}, [&](const Ints& i) { return want(a.at(i)); }), 2e-6};
}
Case case_gelu(const Maker& make) {
  return pointwise(
      make, [](const Tensor& t) { return gelu(t); },
      [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); });
}
Case case_elu(const Maker& make) {
  return pointwise(
      make, [](const Tensor& t) { return elu(t, 0.5); },
      [](double x) { return x < 0 ? 0.5 * std::expm1(x) : x; });
}
Case case_leaky_relu(const Maker& make) {
  return pointwise(
      make, [](const Tensor& t) { return leaky_relu(t, 0.25); },
      [](double x) { return x < 0 ? 0.25 * x : x; });
}
Case case_hard_sigmoid(const Maker& make) {
  return pointwise(
      make, [](const Tensor& t) { return hard_sigmoid(t, 0.5, 0.25); },
      [](double x) { return std::clamp(0.5 * x + 0.25, 0.0, 1.0); });
}
Case case_clip(const Maker& make) {
  return {clip(make({{4}, {-2, 0.5, 3, NAN}}), make({{}, {-1}}), make({{}, {1}})),
          {{4}, {-1, 0.5, 1, NAN}}};
}

Case case_softmax(const Maker& make) {
  const Array a = sample({3, 5});
  const Array sums = fold(a, {1}, [](const std::vector<double>& v) {
    double s = 0;
    for (double x : v) s += std::exp(x);
    return s;
  });
  return {softmax(make(a), 1),
          generate({3, 5}, [&](const Ints& i) { return std::exp(a.at(i)) / sums.at({i[0], 0}); }),
          1e-6};
}
Case case_log_softmax(const Maker& make) {
  const Array a = sample({3, 5});
  const Array sums = fold(a, {0}, [](const std::vector<double>& v) {
    double s = 0;
    for (double x : v) s += std::exp(x);
    return s;
  });
  return {log_softmax(make(a), 0),
          generate({3, 5}, [&](const Ints& i) { return a.at(i) - std::log(sums.at({0, i[1]})); }),
          2e-6};
}
Case case_variance(const Maker& make) {
  const Array a = sample({3, 5});
  return {variance(make(a), {1}, 1, true),
          fold(a, {1}, [](const std::vector<double>& v) { return variance_value(v) * 5 / 4; }),
          1e-6};
}

}  // namespace tiny::function_cases
