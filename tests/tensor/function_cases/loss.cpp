// Definitions of losses.
#include <algorithm>
#include <map>

#include "tensor/activation.h"
#include "tensor/ctc.h"
#include "tensor/elementwise.h"
#include "tensor/loss.h"
#include "tensor/reduce.h"
#include "tests/tensor/function_cases/case.h"

namespace tiny::function_cases {

static double mean_of(const Array& a) {
  return std::accumulate(a.values.begin(), a.values.end(), 0.0) /
         static_cast<double>(a.values.size());
}
// Element by element of two samples, and their mean.
template <class F>
static Array mean_of_pairs(const Array& x, const Array& y, F loss) {
  return {{}, {mean_of(generate(x.shape, [&](const Ints& i) { return loss(x.at(i), y.at(i)); }))}};
}
static double log_share(const Array& logits, int64_t row, int64_t of) {
  double total = 0;
  for (int64_t c = 0; c < logits.shape[1]; ++c) total += std::exp(logits.at({row, c}));
  return logits.at({row, of}) - std::log(total);
}

// Classes 2 0 1 2, of which 0 is ignored, with weights and a share for all classes.
Case case_cross_entropy(const Maker& make) {
  const Array x = sample({4, 3}), weight{{3}, {0.5, 2, 1.5}}, target{{4}, {2, 0, 1, 2}};
  constexpr double kShare = 0.25;
  double sharp = 0, flat = 0, weights = 0;
  for (int64_t row = 0; row < 4; ++row) {
    const auto of = static_cast<int64_t>(target.at({row}));
    if (of == 0) continue;
    weights += weight.at({of});
    sharp -= weight.at({of}) * log_share(x, row, of);
    for (int64_t c = 0; c < 3; ++c) flat -= weight.at({c}) * log_share(x, row, c) / 3;
  }
  const LossOptions options{make(weight), 0, LossReduction::Mean};
  return {cross_entropy(make(x), make.ints(target), options, kShare),
          {{}, {((1 - kShare) * sharp + kShare * flat) / weights}},
          1e-6};
}
Case case_nll_loss(const Maker& make) {
  const Array x = sample({4, 3}), target{{4}, {2, 0, 1, 2}};
  return {nll_loss(make(x), make.ints(target), {{}, {}, LossReduction::None}),
          generate({4}, [&](const Ints& i) {
            return -x.at({i[0], static_cast<int64_t>(target.at(i))});
          })};
}
// Of all ways to go through 4 steps, those that leave the labels without repetitions and blanks.
static double probability_of(const Array& log_probability, int64_t batch, const Ints& labels,
                             int64_t steps) {
  double total = 0;
  for (int64_t way = 0; way < 81; ++way) {
    Ints spelled;
    double here = 0;
    int64_t rest = way, last = -1;
    bool is_over = false;
    for (int64_t t = 0; t < 4; ++t, rest /= 3) {
      const int64_t label = rest % 3;
      if (t >= steps) {
        is_over |= label != 0;  // one way of those that differ behind the end
        continue;
      }
      here += log_probability.at({t, batch, label});
      if (label != 0 && label != last) spelled.push_back(label);
      last = label;
    }
    if (!is_over && spelled == labels) total += std::exp(here);
  }
  return total;
}
Case case_ctc_loss(const Maker& make) {
  const Array x = sample({4, 3, 3});
  const Array target{{3, 2}, {1, 1, 2, 1, 2, 0}};
  const CtcOptions options{0, LossReduction::None};
  return {ctc_loss(make(x), make.ints(target), make.ints({{3}, {4, 3, 2}}),
                   make.ints({{3}, {2, 2, 1}}), options),
          {{3},
           {-std::log(probability_of(x, 0, {1, 1}, 4)), -std::log(probability_of(x, 1, {2, 1}, 3)),
            -std::log(probability_of(x, 2, {2}, 2))}},
          1e-5};
}
Case case_mse_loss(const Maker& make) {
  const Array x = sample({2, 3}, 1), y = sample({2, 3}, 2);
  return {mse_loss(make(x), make(y), LossReduction::Mean),
          mean_of_pairs(x, y, [](double a, double b) { return (a - b) * (a - b); }), 1e-6};
}
Case case_l1_loss(const Maker& make) {
  const Array x = sample({2, 3}, 1), y = sample({2, 3}, 2);
  return {l1_loss(make(x), make(y), LossReduction::Mean),
          mean_of_pairs(x, y, [](double a, double b) { return std::abs(a - b); }), 1e-6};
}
static double smooth_distance(double a, double b, double beta) {
  const double d = std::abs(a - b);
  return d < beta ? d * d / (2 * beta) : d - beta / 2;
}
Case case_smooth_l1_loss(const Maker& make) {
  const Array x = sample({2, 3}, 1), y = sample({2, 3}, 2);
  return {smooth_l1_loss(make(x), make(y), LossReduction::Mean, 0.5),
          mean_of_pairs(x, y, [](double a, double b) { return smooth_distance(a, b, 0.5); }), 1e-6};
}
Case case_huber_loss(const Maker& make) {
  const Array x = sample({2, 3}, 1), y = sample({2, 3}, 2);
  return {huber_loss(make(x), make(y), LossReduction::Mean, 2),
          mean_of_pairs(x, y, [](double a, double b) { return 2 * smooth_distance(a, b, 2); }),
          1e-6};
}
// Shares between 0 and 1, both included.
static Array shares(uint64_t seed) {
  Array a = sample({2, 3}, seed);
  for (double& v : a.values) v = (v + 2) / 4;
  a.values[0] = 0;
  a.values[1] = 1;
  return a;
}
Case case_binary_cross_entropy(const Maker& make) {
  const Array p = shares(1), t = shares(2);
  const auto least = [](double x) { return std::max(std::log(x), -100.0); };
  return {binary_cross_entropy(make(p), make(t), LossReduction::Mean),
          mean_of_pairs(p, t,
                        [&](double a, double b) { return -b * least(a) - (1 - b) * least(1 - a); }),
          1e-6};
}
Case case_binary_cross_entropy_with_logits(const Maker& make) {
  Array x = sample({2, 3}, 1);
  x.values[0] = -200;  // far beyond what exp has room for
  x.values[1] = 200;
  const Array t = shares(2), weight{{1}, {3}};
  return {binary_cross_entropy_with_logits(make(x), make(t), LossReduction::Mean, make(weight)),
          mean_of_pairs(x, t,
                        [](double a, double b) {
                          const double yes = std::max(-a, 0.0) + std::log1p(std::exp(-std::abs(a)));
                          return 3 * b * yes + (1 - b) * (a + yes);
                        }),
          1e-6};
}
Case case_kl_div(const Maker& make) {
  const Array x = sample({2, 3}, 1), t = shares(2);
  return {kl_div(make(x), make(t), LossReduction::Mean),
          mean_of_pairs(x, t, [](double a, double b) { return b > 0 ? b * (std::log(b) - a) : 0; }),
          1e-6};
}

}  // namespace tiny::function_cases
