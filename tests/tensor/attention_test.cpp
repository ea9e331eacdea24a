// Attention and rotary embeddings against loops over plain numbers.
#include "tensor/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tensor/elementwise.h"
#include "tests/support/context.h"
#include "tests/support/failure.h"
#include "tests/support/tensors.h"
#include "tests/tensor/arrays.h"

namespace tiny {
namespace {

using testing::Array;
using testing::expect_failure;
using testing::expect_near;
using testing::failure_of;
using testing::Floats;
using testing::floats;
using testing::floats_of;
using testing::generate;
using testing::spread_numbers;
using testing::tensor_of;

constexpr int64_t kBatch = 2, kHeads = 4, kGroups = 2, kQueries = 3, kKeys = 5, kSize = 4;
constexpr double kScale = 40, kTolerance = 3e-6;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

const Array kQuery = spread_numbers({kBatch, kHeads, kQueries, kSize}, 1, kScale);
const Array kKey = spread_numbers({kBatch, kGroups, kKeys, kSize}, 2, kScale);
const Array kValue = spread_numbers({kBatch, kGroups, kKeys, kSize}, 3, kScale);

// What the scores become before the softmax: f(scaled product, [batch, head, query, key]).
using Scored = std::function<double(double, const Ints&)>;

Array scores_by(double scale, const Scored& f) {
  return generate({kBatch, kHeads, kQueries, kKeys}, [&](const Ints& at) {
    double sum = 0;
    for (int64_t i = 0; i < kSize; ++i)
      sum += kQuery.at({at[0], at[1], at[2], i}) *
             kKey.at({at[0], at[1] / (kHeads / kGroups), at[3], i});
    return f(sum * scale, at);
  });
}

Array weights_of(const Array& scores) {
  return generate(scores.shape, [&](const Ints& at) {
    double sum = 0;
    for (int64_t k = 0; k < kKeys; ++k) sum += std::exp(scores.at({at[0], at[1], at[2], k}));
    return std::exp(scores.at(at)) / sum;
  });
}

Array attended(const Array& scores) {
  const Array weights = weights_of(scores);
  return generate({kBatch, kHeads, kQueries, kSize}, [&](const Ints& at) {
    double sum = 0;
    for (int64_t k = 0; k < kKeys; ++k)
      sum += weights.at({at[0], at[1], at[2], k}) *
             kValue.at({at[0], at[1] / (kHeads / kGroups), k, at[3]});
    return sum;
  });
}

class ScaledDotProduct : public ::testing::TestWithParam<std::string> {
 protected:
  Tensor of(const Array& a) const { return tensor_of(context_, a); }
  Attention attention(const AttentionOptions& options) const {
    return scaled_dot_product_attention(of(kQuery), of(kKey), of(kValue), options);
  }
  Ref<Context> context_ = testing::new_context(GetParam());
};

INSTANTIATE_TEST_SUITE_P(Devices, ScaledDotProduct, ::testing::Values("cpu", "interp"));

TEST_P(ScaledDotProduct, ConsecutiveHeadsShareKeys) {
  const Array scores = scores_by(0.5, [](double s, const Ints&) { return s; });
  const Attention got = attention({});
  expect_near(floats_of(got.y), attended(scores), kTolerance);
  expect_near(floats_of(got.scores), scores, kTolerance);
}

TEST_P(ScaledDotProduct, CapsThenMasksThenWeighs) {
  AttentionOptions options;
  options.scale = 0.7;
  options.softcap = 1.5;
  const Array mask = spread_numbers({kQueries, kKeys}, 5, kScale);
  options.mask = of(mask);
  const auto capped = [](double s, const Ints&) { return 1.5 * std::tanh(s / 1.5); };
  const auto masked = [&](double s, const Ints& at) {
    return capped(s, at) + mask.at({at[2], at[3]});
  };
  const Array scores = scores_by(0.7, masked);
  options.shown = AttentionStage::Capped;
  expect_near(floats_of(attention(options).scores), scores_by(0.7, capped), kTolerance);
  options.shown = AttentionStage::Masked;
  expect_near(floats_of(attention(options).scores), scores, kTolerance);
  options.shown = AttentionStage::Weights;
  const Attention got = attention(options);
  expect_near(floats_of(got.scores), weights_of(scores), kTolerance);
  expect_near(floats_of(got.y), attended(scores), kTolerance);
}

// A mask that ends before the keys, the keys of each sequence, and those before each query.
TEST_P(ScaledDotProduct, WhatIsNotLookedAtWeighsNothing) {
  AttentionOptions options;
  const Array may =
      generate({kQueries, 4}, [](const Ints& at) { return at[0] != 1 || at[1] != 0; });
  options.mask = cast(of(may), kBool);
  const Ints lengths{3, 5};
  options.key_lengths = from_data(context_, kInt64, {2}, lengths.data(), 16);
  options.is_causal = true;
  options.first_query = 2;
  const Array scores = scores_by(0.5, [&](double s, const Ints& at) {
    const bool looks = may.at_or({at[2], at[3]}, 0) != 0 &&
                       at[3] < lengths[static_cast<size_t>(at[0])] && at[3] <= at[2] + 2;
    return looks ? s : -kInfinity;
  });
  expect_near(floats_of(attention(options).y), attended(scores), kTolerance);
  const Array numbers_of_mask = generate({1, 1, 1, 3}, [](const Ints&) { return 0.25; });
  AttentionOptions shorter;
  shorter.mask = of(numbers_of_mask);
  expect_near(floats_of(attention(shorter).y),
              attended(scores_by(
                  0.5, [](double s, const Ints& at) { return at[3] < 3 ? s + 0.25 : -kInfinity; })),
              kTolerance);
}

TEST_P(ScaledDotProduct, HeadsAreSplitAndJoined) {
  const Array flat = spread_numbers({2, 3, 8}, 4, kScale);
  const Tensor heads = split_heads(of(flat), 2);
  expect_near(floats_of(heads), flat, kTolerance);
  EXPECT_EQ(heads.shape(), to_shape({2, 3, 2, 4}));
  expect_near(floats_of(join_heads(permute(heads, {0, 2, 1, 3}))), flat, kTolerance);
}

TEST_P(ScaledDotProduct, PairsAreRotated) {
  constexpr int64_t kPairs = 2, kElements = 5;
  const Array x = spread_numbers({2, 3, 2, kElements}, 6, kScale);
  const Array angle = spread_numbers({1, 3, kPairs}, 7, kScale);
  const Array cosine =
      generate(angle.shape, [&](const Ints& at) { return std::cos(angle.at(at)); });
  const Array sine = generate(angle.shape, [&](const Ints& at) { return std::sin(angle.at(at)); });
  for (const bool interleaved : {false, true}) {
    const Array want = generate(x.shape, [&](const Ints& at) {
      const int64_t i = at[3];
      if (i >= 2 * kPairs) return x.at(at);
      const int64_t pair = interleaved ? i / 2 : i % kPairs;
      const bool is_second = interleaved ? i % 2 == 1 : i >= kPairs;
      const auto of_pair = [&](bool second) {
        const int64_t place =
            interleaved ? 2 * pair + (second ? 1 : 0) : pair + (second ? kPairs : 0);
        return x.at({at[0], at[1], at[2], place});
      };
      const double c = cosine.at({0, at[1], pair}), s = sine.at({0, at[1], pair});
      return is_second ? s * of_pair(false) + c * of_pair(true)
                       : c * of_pair(false) - s * of_pair(true);
    });
    expect_near(floats_of(rotary_embedding(of(x), of(cosine), of(sine), interleaved)), want,
                kTolerance);
  }
}

TEST(AttentionMistakes, AreNamed) {
  const Ref<Context> context = testing::new_context("interp");
  const auto of = [&](const Ints& shape) {
    return tensor_of(context, generate(shape, [](const Ints&) { return 0; }));
  };
  const Tensor q = of({1, 4, 2, 3}), k = of({1, 2, 5, 3});
  const auto attention = [&](const Tensor& query, const Tensor& value,
                             const AttentionOptions& options = {}) {
    return failure_of([&] { scaled_dot_product_attention(query, k, value, options); });
  };
  expect_failure(attention(of({4, 2, 3}), k), Status::Shape,
                 {"[4, 2, 3]", "[batch, heads, sequence, size]"});
  expect_failure(attention(of({1, 3, 2, 3}), k), Status::Shape, {"3 query heads for 2 and 2"});
  expect_failure(attention(q, of({1, 1, 5, 3})), Status::Shape, {"4 query heads for 2 and 1"});
  AttentionOptions options;
  options.mask = of({2, 6});
  expect_failure(attention(q, k, options), Status::Shape, {"mask", "[2, 6]", "5 keys"});
  options.mask = Tensor();
  options.key_lengths = of({1, 1});
  expect_failure(attention(q, k, options), Status::Shape, {"key_lengths", "[1, 1]", "[batch]"});
  expect_failure(failure_of([&] { split_heads(of({1, 2, 6}), 4); }), Status::Shape,
                 {"[1, 2, 6]", "4 heads"});
  expect_failure(failure_of([&] { join_heads(of({1, 2, 6})); }), Status::Shape, {"[1, 2, 6]"});
  expect_failure(failure_of([&] { rotary_embedding(q, of({1, 4, 2}), of({1, 4, 2})); }),
                 Status::Shape, {"[1, 4, 2]", "3 elements"});
}

}  // namespace
}  // namespace tiny
