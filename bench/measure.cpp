#include "measure.h"

#include <immintrin.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <random>
#include <stdexcept>

namespace tiny::bench {
namespace {

constexpr double kTurn = 0.002;        // seconds that a contender has in a round
constexpr double kTolerance = 1e-3;    // of the results' largest magnitude
constexpr int kChains = 24;            // independent accumulators: enough for any latency
constexpr double kStepsPerCheck = 64;  // of the probe, between looks at its count

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double time_of(const Contender& contender) {
  const double start = now();
  contender.call();
  return now() - start;
}

double difference(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return HUGE_VAL;
  double most = 0;
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double d = std::fabs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (!(d <= most)) most = d;  // a NaN counts
    largest = std::max(largest, std::fabs(static_cast<double>(b[i])));
  }
  return largest > 0 ? most / largest : most;
}

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

// Twelve chains: there are sixteen registers.
__attribute__((target("avx2,fma"))) float fma_256(int64_t steps) {
  __m256 chain[kChains / 2];
  for (int i = 0; i < kChains / 2; ++i) chain[i] = _mm256_set1_ps(static_cast<float>(i));
  const __m256 factor = _mm256_set1_ps(0.999F);
  for (int64_t s = 0; s < steps; ++s)
#pragma GCC unroll 12
    for (int i = 0; i < kChains / 2; ++i) chain[i] = _mm256_fmadd_ps(chain[i], factor, factor);
  for (int i = 1; i < kChains / 2; ++i) chain[0] = _mm256_add_ps(chain[0], chain[i]);
  float lanes[8];
  _mm256_storeu_ps(lanes, chain[0]);
  return lanes[0] + lanes[7];
}

std::string text(double value) {
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%.9g", value);
  return std::isfinite(value) ? buffer : "null";
}

std::string quoted(const std::string& value) {
  std::string out = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

}  // namespace

std::vector<Samples> measure(const Row& row, double seconds, int rounds) {
  std::vector<Samples> samples(row.contenders.size());
  std::vector<int64_t> calls(row.contenders.size());
  const auto reference = std::find_if(row.contenders.begin(), row.contenders.end(),
                                      [](const Contender& c) { return c.kind == "peer"; });
  if (reference == row.contenders.end()) throw std::runtime_error(row.name + ": no peer");
  reference->call();
  const std::vector<float> right = reference->result();
  for (size_t i = 0; i < samples.size(); ++i) {
    const Contender& contender = row.contenders[i];
    contender.call();
    if (contender.result) samples[i].error = difference(contender.result(), right);
    if (!(samples[i].error <= kTolerance))
      throw std::runtime_error(row.name + ": " + contender.name + " is wrong by " +
                               text(samples[i].error) + " of the largest magnitude");
    const double once = std::min(time_of(contender), time_of(contender));
    calls[i] = std::max<int64_t>(1, static_cast<int64_t>(kTurn / once));
  }
  const double start = now();
  for (int round = 0; round < rounds || now() - start < seconds; ++round)
    for (size_t i = 0; i < samples.size(); ++i)
      for (int64_t call = 0; call < calls[i]; ++call)
        samples[i].seconds.push_back(time_of(row.contenders[i]));
  return samples;
}

double best(const std::vector<double>& seconds) {
  return *std::min_element(seconds.begin(), seconds.end());
}

double median(std::vector<double> seconds) {
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return *middle;
}

std::string row_json(const Row& row, const std::vector<Samples>& samples) {
  std::string out = "{\"name\":" + quoted(row.name) + ",\"flops\":" + text(row.flops) +
                    ",\"bytes\":" + text(row.bytes) +
                    ",\"kernels\":" + (row.kernels.empty() ? "[]" : row.kernels) +
                    ",\"contenders\":[";
  for (size_t i = 0; i < samples.size(); ++i) {
    const Contender& c = row.contenders[i];
    if (i > 0) out += ',';
    out += "{\"name\":" + quoted(c.name) + ",\"kind\":" + quoted(c.kind) +
           ",\"settings\":" + quoted(c.settings) +
           ",\"best_ms\":" + text(best(samples[i].seconds) * 1e3) +
           ",\"median_ms\":" + text(median(samples[i].seconds) * 1e3) +
           ",\"samples\":" + std::to_string(samples[i].seconds.size()) +
           ",\"error\":" + text(samples[i].error) + '}';
  }
  return out + "]}";
}

std::vector<float> random_values(size_t count, uint32_t seed) {
  std::mt19937 generator(seed);
  std::vector<float> values(count);
  for (float& value : values)
    value = static_cast<float>(generator() >> 8) / static_cast<float>(1 << 23) - 1.0F;
  return values;
}

Contender fma_limit(double flops) {
  const bool wide = __builtin_cpu_supports("avx512f") != 0;
  const double per_step = wide ? 2.0 * 16 * kChains : 2.0 * 8 * (kChains / 2);
  const auto steps = static_cast<int64_t>(std::max(kStepsPerCheck, flops / per_step));
  // A volatile sink: the sum must be made, whatever becomes of it.
  const auto sink = std::make_shared<volatile float>(0.0F);
  return {"FMA limit", wide ? "AVX-512 probe" : "AVX2 probe", "limit",
          [=] { *sink = wide ? fma_512(steps) : fma_256(steps); }, nullptr};
}

Contender copy_limit(double bytes) {
  const size_t half = static_cast<size_t>(bytes) / 2;
  const auto from = std::make_shared<std::vector<char>>(half, 1);
  const auto to = std::make_shared<std::vector<char>>(half, 2);
  return {"copy", "memcpy", "limit", [=] { std::memcpy(to->data(), from->data(), half); }, nullptr};
}

}  // namespace tiny::bench
