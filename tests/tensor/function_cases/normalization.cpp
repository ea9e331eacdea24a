// Definitions of normalisation.
#include "tensor/normalization.h"
#include "tensor/elementwise.h"
#include "tensor/reduce.h"
#include "tests/tensor/function_cases/case.h"

namespace tiny::function_cases {

Case case_batch_norm(const Maker& make) {
  const Array x = sample({2, 3, 4}, 1);
  const Array scale = sample({3}, 2);
  const Array bias = sample({3}, 3);
  const Array mean = sample({3}, 4);
  const Array var{{3}, {0.5, 2, 1}};
  return {batch_norm(make(x), make(scale), make(bias), make(mean), make(var), 0.25),
          generate(x.shape,
                   [&](const Ints& i) {
                     const Ints c{i[1]};
                     return (x.at(i) - mean.at(c)) / std::sqrt(var.at(c) + 0.25) * scale.at(c) +
                            bias.at(c);
                   }),
          4e-6};
}

static Array normalized_over(const Array& x, const Ints& axes, double epsilon) {
  const Array m = fold(x, axes, mean_value);
  const Array v = fold(x, axes, variance_value);
  return generate(x.shape, [&](const Ints& i) {
    Ints at = i;
    for (int64_t axis : axes) at[static_cast<size_t>(axis)] = 0;
    return (x.at(i) - m.at(at)) / std::sqrt(v.at(at) + epsilon);
  });
}

Case case_layer_norm(const Maker& make) {
  const Array x = sample({2, 3, 4}, 1);
  const Array scale = sample({3, 4}, 2);
  const Array bias = sample({4}, 3);
  const Array normal = normalized_over(x, {1, 2}, 0.5);
  return {layer_norm(make(x), make(scale), make(bias), 1, 0.5),
          generate(x.shape,
                   [&](const Ints& i) {
                     return normal.at(i) * scale.at({i[1], i[2]}) + bias.at({i[2]});
                   }),
          4e-6};
}
Case case_rms_norm(const Maker& make) {
  const Array x = sample({3, 4}, 1);
  const Array scale = sample({4}, 2);
  const Array power = fold(x, {1}, [](const std::vector<double>& v) {
    double s = 0;
    for (double e : v) s += e * e;
    return s / static_cast<double>(v.size());
  });
  return {rms_norm(make(x), make(scale), -1, 0.5),
          generate(x.shape,
                   [&](const Ints& i) {
                     return x.at(i) / std::sqrt(power.at({i[0], 0}) + 0.5) * scale.at({i[1]});
                   }),
          4e-6};
}
Case case_group_norm(const Maker& make) {
  const Array x = sample({2, 4, 3}, 1);
  const Array scale = sample({4}, 2);
  const Array bias = sample({4}, 3);
  const Array normal = normalized_over({{2, 2, 6}, x.values}, {2}, 0.5);
  return {group_norm(make(x), 2, make(scale), make(bias), 0.5),
          generate(x.shape,
                   [&](const Ints& i) {
                     return normal.at({i[0], i[1] / 2, i[1] % 2 * 3 + i[2]}) * scale.at({i[1]}) +
                            bias.at({i[1]});
                   }),
          4e-6};
}
Case case_instance_norm(const Maker& make) {
  const Array x = sample({2, 3, 2, 4}, 1);
  const Array scale = sample({3}, 2);
  const Array normal = normalized_over(x, {2, 3}, 0.5);
  return {instance_norm(make(x), make(scale), Tensor(), 0.5),
          generate(x.shape, [&](const Ints& i) { return normal.at(i) * scale.at({i[1]}); }), 4e-6};
}
Case lrn_with(const Maker& make, double beta) {
  const Array x = sample({2, 5, 3}, 1);
  return {lrn(make(x), 4, 0.5, beta, 2),
          generate(x.shape,
                   [=](const Ints& i) {
                     double s = 0;
                     for (int64_t c = i[1] - 1; c <= i[1] + 2; ++c) {
                       const double v = x.at_or({i[0], c, i[2]}, 0);
                       s += v * v;
                     }
                     return x.at(i) / std::pow(2 + 0.5 / 4 * s, beta);
                   }),
          2e-6};
}
Case case_lrn(const Maker& make) {
  return lrn_with(make, 0.75);
}

}  // namespace tiny::function_cases
