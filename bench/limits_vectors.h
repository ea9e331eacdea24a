// The loops behind limits.h, for vectors of the type V: compiled once for each width, with the
// instructions that it needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

typedef float Vector256 __attribute__((vector_size(32)));
typedef float Vector512 __attribute__((vector_size(64)));

constexpr int kWideChains = 24;    // independent accumulators: enough for any latency
constexpr int kNarrowChains = 12;  // there are sixteen registers

float fma_256(int64_t steps);
float fma_512(int64_t steps);
float read_256(const float* from, size_t count);
float read_512(const float* from, size_t count);

template <class V>
constexpr size_t kLanes = sizeof(V) / sizeof(float);

// The sums that these return keep the compiler from dropping the work.
template <class V, int kChains>
float fma_chains(int64_t steps) {
  V chain[kChains];
  for (int i = 0; i < kChains; ++i) chain[i] = V{} + static_cast<float>(i);
  const V factor = V{} + 0.999F;
  for (int64_t s = 0; s < steps; ++s)
#pragma GCC unroll 24
    for (int i = 0; i < kChains; ++i) chain[i] = chain[i] * factor + factor;  // one instruction
  for (int i = 1; i < kChains; ++i) chain[0] += chain[i];
  return chain[0][0] + chain[0][kLanes<V> - 1];
}

template <class V>
float read_sums(const float* from, size_t count) {
  constexpr size_t kSums = 8;
  V sums[kSums] = {};
  for (size_t i = 0; i + kSums * kLanes<V> <= count; i += kSums * kLanes<V>)
#pragma GCC unroll 8
    for (size_t k = 0; k < kSums; ++k) {
      V next;
      std::memcpy(&next, from + i + kLanes<V> * k, sizeof next);
      sums[k] += next;
    }
  for (size_t k = 1; k < kSums; ++k) sums[0] += sums[k];
  return sums[0][0] + sums[0][kLanes<V> - 1];
}
