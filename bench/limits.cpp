#include "limits.h"

#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

namespace {

constexpr int kChains = 24;        // independent accumulators: enough for any latency
constexpr int kNarrowChains = 12;  // there are sixteen registers
constexpr double kWideStep = 2.0 * 16 * kChains;
constexpr double kNarrowStep = 2.0 * 8 * kNarrowChains;

// The sum keeps the compiler from dropping the chains.
__attribute__((target("avx512f"))) float fma_512(int64_t steps) {
  __m512 chain[kChains];
  for (int i = 0; i < kChains; ++i) chain[i] = _mm512_set1_ps(static_cast<float>(i));
  const __m512 factor = _mm512_set1_ps(0.999F);
  for (int64_t s = 0; s < steps; ++s)
#pragma GCC unroll 24
    for (int i = 0; i < kChains; ++i) chain[i] = _mm512_fmadd_ps(chain[i], factor, factor);
  for (int i = 1; i < kChains; ++i) chain[0] = _mm512_add_ps(chain[0], chain[i]);
  float lanes[16];
  _mm512_storeu_ps(lanes, chain[0]);
  return lanes[0] + lanes[15];
}

__attribute__((target("avx2,fma"))) float fma_256(int64_t steps) {
  __m256 chain[kNarrowChains];
  for (int i = 0; i < kNarrowChains; ++i) chain[i] = _mm256_set1_ps(static_cast<float>(i));
  const __m256 factor = _mm256_set1_ps(0.999F);
  for (int64_t s = 0; s < steps; ++s)
#pragma GCC unroll 12
    for (int i = 0; i < kNarrowChains; ++i) chain[i] = _mm256_fmadd_ps(chain[i], factor, factor);
  for (int i = 1; i < kNarrowChains; ++i) chain[0] = _mm256_add_ps(chain[0], chain[i]);
  float lanes[8];
  _mm256_storeu_ps(lanes, chain[0]);
  return lanes[0] + lanes[7];
}

__attribute__((target("avx2"))) float read_256(const float* from, size_t count) {
  __m256 sums[8];
  for (__m256& sum : sums) sum = _mm256_setzero_ps();
  for (size_t i = 0; i + 64 <= count; i += 64)
#pragma GCC unroll 8
    for (size_t k = 0; k < 8; ++k)
      sums[k] = _mm256_add_ps(sums[k], _mm256_loadu_ps(from + i + 8 * k));
  for (size_t k = 1; k < 8; ++k) sums[0] = _mm256_add_ps(sums[0], sums[k]);
  float lanes[8];
  _mm256_storeu_ps(lanes, sums[0]);
  return lanes[0] + lanes[7];
}

__attribute__((target("avx512f"))) float read_512(const float* from, size_t count) {
  __m512 sums[8];
  for (__m512& sum : sums) sum = _mm512_setzero_ps();
  for (size_t i = 0; i + 128 <= count; i += 128)
#pragma GCC unroll 8
    for (size_t k = 0; k < 8; ++k)
      sums[k] = _mm512_add_ps(sums[k], _mm512_loadu_ps(from + i + 16 * k));
  for (size_t k = 1; k < 8; ++k) sums[0] = _mm512_add_ps(sums[0], sums[k]);
  float lanes[16];
  _mm512_storeu_ps(lanes, sums[0]);
  return lanes[0] + lanes[15];
}

__attribute__((target("avx2"))) void stream_256(char* to, const char* from, size_t bytes) {
  size_t done = (32 - reinterpret_cast<uintptr_t>(to) % 32) % 32;
  done = std::min(done, bytes);
  std::memcpy(to, from, done);
  for (; done + 32 <= bytes; done += 32)
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + done),
                        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + done)));
  std::memcpy(to + done, from + done, bytes - done);
  _mm_sfence();
}

}  // namespace

int bench_is_wide() {
  return __builtin_cpu_supports("avx512f") != 0;
}

double bench_fma(double flops, int threads, int is_wide) {
  const double step = is_wide ? kWideStep : kNarrowStep;
  const auto steps = static_cast<int64_t>(flops / threads / step) + 1;
  const auto work = [=] {
    // A volatile sink: the sum must be made, whatever becomes of it.
    volatile float sink = is_wide ? fma_512(steps) : fma_256(steps);
    static_cast<void>(sink);
  };
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
  return static_cast<double>(steps) * step * threads;
}

void bench_copy_streaming(void* to, const void* from, size_t bytes) {
  stream_256(static_cast<char*>(to), static_cast<const char*>(from), bytes);
}

float bench_read(const void* from, size_t bytes) {
  const size_t count = bytes / sizeof(float);
  const auto* values = static_cast<const float*>(from);
  return bench_is_wide() ? read_512(values, count) : read_256(values, count);
}
