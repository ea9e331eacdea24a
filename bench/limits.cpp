#include "limits.h"

#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "limits_vectors.h"

namespace {

constexpr double kWideStep = 2.0 * 16 * kWideChains;
constexpr double kNarrowStep = 2.0 * 8 * kNarrowChains;

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

void bench_read_by(const void* from, size_t bytes, int threads, int times) {
  const size_t part = bytes / static_cast<size_t>(threads) / 64 * 64;
  const auto work = [=](int thread) {
    volatile float sink = 0;
    for (int i = 0; i < times; ++i)
      sink = bench_read(static_cast<const char*>(from) + part * static_cast<size_t>(thread), part);
    static_cast<void>(sink);
  };
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(work, i);
  work(0);
  for (std::thread& other : others) other.join();
}

float bench_read(const void* from, size_t bytes) {
  const size_t count = bytes / sizeof(float);
  const auto* values = static_cast<const float*>(from);
  return bench_is_wide() ? read_512(values, count) : read_256(values, count);
}
