// Definitions of random numbers, and values under an identity of their own.
#include <algorithm>
#include <bit>
#include <numbers>
#include <numeric>

#include "nn/initialize.h"
#include "tensor/activation.h"
#include "tensor/alias.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/movement.h"
#include "tensor/random.h"
#include "tensor/reduce.h"
#include "tests/tensor/function_cases/case.h"

namespace tiny::function_cases {

// Threefry2x32 with 20 rounds, a word at a time (Salmon et al. 2011).
static std::vector<uint32_t> threefry_bits(uint64_t seed, size_t count) {
  const auto low = static_cast<uint32_t>(seed), high = static_cast<uint32_t>(seed >> 32);
  const uint32_t schedule[] = {low, high, 0x1BD11BDA ^ low ^ high};
  const int rotations[] = {13, 15, 26, 6, 17, 29, 16, 24};
  const size_t half = (count + 1) / 2;
  std::vector<uint32_t> bits(2 * half);
  for (size_t i = 0; i < half; ++i) {
    uint32_t a = static_cast<uint32_t>(i) + low, b = static_cast<uint32_t>(half + i) + high;
    for (uint32_t round = 0; round < 20; ++round) {
      a += b;
      b = std::rotl(b, rotations[round % 8]) ^ a;
      if (round % 4 != 3) continue;
      const uint32_t group = round / 4 + 1;
      a += schedule[group % 3];
      b += schedule[(group + 1) % 3] + group;
    }
    bits[i] = a;
    bits[half + i] = b;
  }
  bits.resize(count);
  return bits;
}

constexpr uint64_t kSeed = 0x123456789abcdef;
static Tensor key(const Maker& make) {
  return random_key(make.context(), kSeed);
}
template <class F>
static Array of_bits(const Ints& shape, F value) {
  size_t at = 0, count = 1;
  for (const int64_t d : shape) count *= static_cast<size_t>(d);
  const std::vector<uint32_t> bits = threefry_bits(kSeed, count);
  return generate(shape, [&](const Ints&) { return static_cast<double>(value(bits[at++])); });
}
static double fraction_of(uint32_t bits) {
  return std::ldexp(bits >> 9, -23);
}

Case case_random_key(const Maker& make) {
  return {key(make), {{2}, {0x89abcdef, 0x1234567}}};
}
Case case_random_bits(const Maker& make) {
  return {random_bits(key(make), 7), of_bits({7}, [](uint32_t b) { return b; })};
}
Case case_random_at(const Maker& make) {
  const Tensor counters = cast(reshape(arange(make.context(), kInt64, 6), {2, 3}), kUInt32);
  return {random_at(key(make), counters), of_bits({2, 3}, [](uint32_t b) { return b; })};
}
Case case_random_split(const Maker& make) {
  return {split_key(key(make), 3), of_bits({3, 2}, [](uint32_t b) { return b; })};
}
Case case_random_uniform(const Maker& make) {
  return {random_uniform(key(make), kFloat32, {2, 3}), of_bits({2, 3}, fraction_of)};
}
Case case_random_normal(const Maker& make) {
  const Array pair = of_bits({2, 5}, fraction_of);
  return {random_normal(key(make), kFloat32, {5}),
          generate({5},
                   [&](const Ints& i) {
                     return std::cos(2 * std::numbers::pi * pair.at({0, i[0]})) *
                            std::sqrt(-2 * std::log1p(-pair.at({1, i[0]})));
                   }),
          1e-6};
}
Case case_random_integers(const Maker& make) {
  return {random_integers(key(make), kInt32, {6}, -3, 9),
          of_bits({6}, [](uint32_t b) { return static_cast<int>(uint64_t{b} * 12 >> 32) - 3; })};
}
Case case_random_permutation(const Maker& make) {
  const std::vector<uint32_t> bits = threefry_bits(kSeed, 10);
  std::vector<double> order(5);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](double at) {
    const size_t i = 2 * static_cast<size_t>(at);
    return (uint64_t{bits[i + 1]} << 32 | bits[i]) >> 1;
  });
  return {random_permutation(key(make), 5), {{5}, order}};
}
Case case_initialize(const Maker& make) {
  return {initialize(key(make), {Initial::Constant, 3}, kFloat32, {2, 2}), {{2, 2}, {3, 3, 3, 3}}};
}
Case case_random_bernoulli(const Maker& make) {
  return {random_bernoulli(key(make), full(make.context(), kFloat32, {2, 4}, 0.5)),
          of_bits({2, 4}, [](uint32_t b) { return fraction_of(b) < 0.5; })};
}
// Where the distribution's values up to each, by the normal one, meet the uniform number.
static double normal_at(double share, double low, double high) {
  const auto below = [](double x) { return std::erfc(-x / std::numbers::sqrt2) / 2; };
  const double wanted = below(low) + share * (below(high) - below(low));
  for (int step = 0; step < 60; ++step) {
    const double middle = (low + high) / 2;
    (below(middle) < wanted ? low : high) = middle;
  }
  return low;
}
Case case_random_truncated_normal(const Maker& make) {
  return {random_truncated_normal(key(make), kFloat32, {40}, -1.5, 3),
          of_bits({40}, [](uint32_t b) { return normal_at(fraction_of(b), -1.5, 3); }), 2e-6};
}
// Shares of a line of all weights, one behind the other.
Case case_random_multinomial(const Maker& make) {
  const Array weights{{2, 4}, {0, 2, 1, 5, 0.5, 0, 0, 0.25}};
  const Array u = of_bits({2, 6}, fraction_of);
  return {random_multinomial(key(make), make(weights), 6, true),
          generate({2, 6}, [&](const Ints& i) {
            const int64_t row = i[0];
            double all = 0;
            for (int64_t k = 0; k < 4; ++k) all += weights.at({row, k});
            double rest = u.at(i) * all;
            int64_t place = 0;
            while (rest >= weights.at({row, place})) rest -= weights.at({row, place++});
            return static_cast<double>(place);
          })};
}
Case case_dropout(const Maker& make) {
  const Array x = sample({3, 4}), u = of_bits({3, 4}, fraction_of);
  return {dropout(key(make), make(x), 0.375),
          generate({3, 4}, [&](const Ints& i) { return u.at(i) < 0.625 ? x.at(i) / 0.625 : 0; }),
          1e-6};
}
Case case_clone(const Maker& make) {
  const Array x = sample({3, 4});
  return {clone(make(x)), x};
}
Case case_detach(const Maker& make) {
  const Array x = sample({3, 4});
  return {detach(make(x)), x};
}
Case case_recompute(const Maker& make) {
  const Array x = sample({3, 4});
  const Tensor a = make(x), kept[] = {a};
  return {recompute(neg(a), kept), generate({3, 4}, [&](const Ints& i) { return -x.at(i); })};
}

}  // namespace tiny::function_cases
