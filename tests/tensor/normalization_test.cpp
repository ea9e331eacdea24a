// Normalisations against loops over plain numbers.
#include "tensor/normalization.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tensor/elementwise.h"
#include "tests/support/context.h"
#include "tests/support/failure.h"
#include "tests/support/tensors.h"
#include "tests/tensor/arrays.h"

namespace tiny {
namespace {

using testing::Array;
using testing::expect_failure;
using testing::failure_of;
using testing::Floats;
using testing::floats;
using testing::floats_of;
using testing::fold;
using testing::generate;

constexpr double kEpsilon = 0.01;

Array numbers(const Ints& shape, int64_t seed, double shift = 0) {
  return testing::spread_numbers(shape, seed, 40, shift);
}

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (double v : values) sum += v;
  return sum / static_cast<double>(values.size());
}
double variance_of(const std::vector<double>& values) {
  double sum = 0;
  for (double v : values) sum += (v - mean_of(values)) * (v - mean_of(values));
  return sum / static_cast<double>(values.size());
}

void expect_near(const Tensor& got, const Array& want) {
  testing::expect_near(floats_of(cast(got, kFloat32)), want, 4e-6);
}

class Normalization : public ::testing::TestWithParam<std::string> {
 protected:
  Tensor of(const Array& a) const { return testing::tensor_of(context_, a); }
  Ref<Context> context_ = testing::new_context(GetParam());
  const Array x_ = numbers({2, 4, 3, 2}, 1);
  const Array scale_ = numbers({4}, 2), bias_ = numbers({4}, 3);
  const Array mean_ = numbers({4}, 4), var_ = numbers({4}, 5, 2);
};

INSTANTIATE_TEST_SUITE_P(Devices, Normalization, ::testing::Values("cpu", "interp"));

TEST_P(Normalization, BatchesByGivenStatistics) {
  const Array want = generate(x_.shape, [&](const Ints& at) {
    const Ints c{at[1]};
    return (x_.at(at) - mean_.at(c)) / std::sqrt(var_.at(c) + kEpsilon) * scale_.at(c) +
           bias_.at(c);
  });
  for (const auto& norm : {batch_norm, batch_norm_folded})
    expect_near(norm(of(x_), of(scale_), of(bias_), of(mean_), of(var_), kEpsilon), want);
}

TEST_P(Normalization, BatchesByTheirOwnStatistics) {
  const Array mean = fold(x_, {0, 2, 3}, mean_of), var = fold(x_, {0, 2, 3}, variance_of);
  const RunningBatchNorm got =
      batch_norm_training(of(x_), of(scale_), of(bias_), of(mean_), of(var_), kEpsilon, 0.75);
  expect_near(got.y, generate(x_.shape, [&](const Ints& at) {
                const Ints c{0, at[1], 0, 0};
                return (x_.at(at) - mean.at(c)) / std::sqrt(var.at(c) + kEpsilon) *
                           scale_.at({at[1]}) +
                       bias_.at({at[1]});
              }));
  const auto running = [&](const Array& stored, const Array& fresh) {
    return generate({4}, [&](const Ints& at) {
      return 0.75 * stored.at(at) + 0.25 * fresh.at({0, at[0], 0, 0});
    });
  };
  expect_near(got.running_mean, running(mean_, mean));
  expect_near(got.running_var, running(var_, var));
}

TEST_P(Normalization, BatchesElementByElement) {
  const Ints sample{4, 3, 2};
  const Array scale = numbers(sample, 2), bias = numbers(sample, 3), mean = numbers(sample, 4);
  const Array var = numbers(sample, 5, 2);
  const Tensor got =
      batch_norm_elementwise(of(x_), of(scale), of(bias), of(mean), of(var), kEpsilon);
  expect_near(got, generate(x_.shape, [&](const Ints& at) {
                const Ints i{at[1], at[2], at[3]};
                return (x_.at(at) - mean.at(i)) / std::sqrt(var.at(i) + kEpsilon) * scale.at(i) +
                       bias.at(i);
              }));
}

TEST_P(Normalization, LayersTellTheirStatistics) {
  const Array scale = numbers({3, 2}, 2), bias = numbers({3, 2}, 3);
  const Array mean = fold(x_, {2, 3}, mean_of);
  const Array inverse = fold(x_, {2, 3}, [](const std::vector<double>& values) {
    return 1 / std::sqrt(variance_of(values) + kEpsilon);
  });
  const Array want = generate(x_.shape, [&](const Ints& at) {
    const Ints row{at[0], at[1], 0, 0};
    return (x_.at(at) - mean.at(row)) * inverse.at(row) * scale.at({at[2], at[3]}) +
           bias.at({at[2], at[3]});
  });
  const StagedLayerNorm got = layer_norm_staged(of(x_), of(scale), of(bias), 2, kEpsilon);
  expect_near(got.y, want);
  expect_near(got.mean, mean);
  expect_near(got.inverse_deviation, inverse);
  expect_near(layer_norm(of(x_), of(scale), of(bias), 2, kEpsilon), want);
}

TEST_P(Normalization, RootsOfMeanSquares) {
  const Array scale = numbers({2}, 2);
  const Array power = fold(x_, {3}, [](const std::vector<double>& values) {
    return (values[0] * values[0] + values[1] * values[1]) / 2;
  });
  const Array want = generate(x_.shape, [&](const Ints& at) {
    return x_.at(at) / std::sqrt(power.at({at[0], at[1], at[2], 0}) + kEpsilon) * scale.at({at[3]});
  });
  expect_near(rms_norm(of(x_), of(scale), -1, kEpsilon), want);
  expect_near(rms_norm_staged(of(x_), of(scale), -1, kEpsilon), want);
}

// The first rounding is to float16 before the scale: 1/3 is not what a third of three rounds to.
TEST_P(Normalization, StagesRoundTwice) {
  const Tensor x = cast(floats(context_, {1, 2, 4}), kFloat16);
  const Tensor scale = cast(floats(context_, {3, 3, 3}), kFloat16);
  const Tensor plain = cast(rms_norm_staged(x, Tensor()), kFloat32);
  const Tensor scaled = rms_norm_staged(x, scale);
  EXPECT_EQ(scaled.dtype(), kFloat16);
  const Tensor want = cast(plain * floats(context_, {3, 3, 3}), kFloat16);
  EXPECT_EQ(floats_of(cast(scaled, kFloat32)), floats_of(cast(want, kFloat32)));
  EXPECT_EQ(layer_norm_staged(x, scale, Tensor()).mean.dtype(), kFloat32);
}

TEST_P(Normalization, GroupsOfChannels) {
  const Array grouped{{2, 2, 12}, x_.values};
  const Array mean = fold(grouped, {2}, mean_of), var = fold(grouped, {2}, variance_of);
  expect_near(group_norm(of(x_), 2, of(scale_), of(bias_), kEpsilon),
              generate(x_.shape, [&](const Ints& at) {
                const Ints g{at[0], at[1] / 2, 0};
                return (x_.at(at) - mean.at(g)) / std::sqrt(var.at(g) + kEpsilon) *
                           scale_.at({at[1]}) +
                       bias_.at({at[1]});
              }));
}

TEST_P(Normalization, MeansDeviationsAndNorms) {
  const Array mean = fold(x_, {0, 2, 3}, mean_of), var = fold(x_, {0, 2, 3}, variance_of);
  expect_near(mean_variance_norm(of(x_), {0, 2, 3}), generate(x_.shape, [&](const Ints& at) {
                const Ints c{0, at[1], 0, 0};
                return (x_.at(at) - mean.at(c)) / std::sqrt(var.at(c));
              }));
  for (const int64_t p : {int64_t{1}, int64_t{2}}) {
    const Array rows{{2, 2}, {3, -4, 0, 0}};
    const double norm = p == 1 ? 7 : 5;
    expect_near(lp_normalize(of(rows), p), Array{{2, 2}, {3 / norm, -4 / norm, 0, 0}});
  }
}

TEST_P(Normalization, MistakesAreNamed) {
  const Tensor x = of(x_), c = of(scale_);
  expect_failure(failure_of([&] { batch_norm_folded(x, of(numbers({3}, 1)), c, c, c); }),
                 Status::Shape, {"[3]", "[4]"});
  expect_failure(failure_of([&] { batch_norm_folded(x, Tensor(), c, c, c); }),
                 Status::InvalidArgument, {"no scale"});
  expect_failure(failure_of([&] { batch_norm_training(c, c, c, c, c); }), Status::Shape, {"[4]"});
  expect_failure(failure_of([&] { batch_norm_training(x, c, c, c, Tensor()); }),
                 Status::InvalidArgument, {"running mean"});
  expect_failure(failure_of([&] { lp_normalize(x, 3); }), Status::InvalidArgument, {"p = 3"});
}

}  // namespace
}  // namespace tiny
