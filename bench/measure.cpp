#include "measure.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <random>
#include <stdexcept>
#include <thread>

#include "limits.h"

namespace tiny::bench {
namespace {

constexpr int kLeastRounds = 3;
constexpr double kPatience = 3;  // times a row's seconds, for the rounds that it should have
constexpr double kProbe = 5e8;   // flops of a thread in a call of the probe: 2 ms and more

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

std::vector<Samples> measure(const Row& row, const Pace& pace) {
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
    if (!(samples[i].error <= row.tolerance))
      throw std::runtime_error(row.name + ": " + contender.name + " is wrong by " +
                               text(samples[i].error) + " of the largest magnitude");
    const double once = std::min(time_of(contender), time_of(contender));
    calls[i] = std::max<int64_t>(1, static_cast<int64_t>(pace.turn / once));
  }
  const double start = now();
  const auto goes_on = [&](int round) {
    const double spent = now() - start;
    return round < kLeastRounds || spent < pace.seconds ||
           (round < pace.rounds && spent < kPatience * pace.seconds);
  };
  for (int round = 0; goes_on(round); ++round)
    for (size_t i = 0; i < samples.size(); ++i) {
      std::this_thread::sleep_for(std::chrono::duration<double>(pace.pause));
      if (pace.pause > 0) row.contenders[i].call();  // wakes what the pause put to sleep
      for (int64_t call = 0; call < calls[i]; ++call)
        samples[i].seconds.push_back(time_of(row.contenders[i]) * row.contenders[i].scale);
    }
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
  std::string out =
      "{\"name\":" + quoted(row.name) + ",\"flops\":" + text(row.flops) +
      ",\"bytes\":" + text(row.bytes) + ",\"threads\":" + std::to_string(row.threads) +
      ",\"interpreted\":" + std::to_string(row.interpreted) +
      ",\"kernels\":" + (row.kernels.empty() ? "[]" : row.kernels) + ",\"contenders\":[";
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

std::string failed_json(const std::string& name, const std::string& problem) {
  return "{\"name\":" + quoted(name) + ",\"failed\":" + quoted(problem) + '}';
}

std::vector<float> random_values(size_t count, uint32_t seed) {
  std::mt19937 generator(seed);
  std::vector<float> values(count);
  for (float& value : values)
    value = static_cast<float>(generator() >> 8) / static_cast<float>(1 << 23) - 1.0F;
  return values;
}

Contender fma_limit(double flops, int threads, bool is_wide) {
  const double asked = std::max(flops, kProbe * threads);
  const double done = bench_fma(asked, threads, is_wide);
  return {"FMA limit", is_wide ? "AVX-512 probe" : "AVX2 probe",
          "limit",     [=] { bench_fma(asked, threads, is_wide); },
          nullptr,     flops / done};
}

std::vector<Contender> copy_limits(double bytes) {
  const size_t half = static_cast<size_t>(bytes) / 2;
  const auto from = std::make_shared<std::vector<char>>(half, 1);
  const auto to = std::make_shared<std::vector<char>>(half, 2);
  return {
      {"copy", "memcpy", "limit", [=] { std::memcpy(to->data(), from->data(), half); }, nullptr},
      {"streaming copy", "stores that pass the caches", "limit",
       [=] { bench_copy_streaming(to->data(), from->data(), half); }, nullptr}};
}

Contender read_limit(double bytes) {
  const auto from = std::make_shared<std::vector<char>>(static_cast<size_t>(bytes), 1);
  return {"read", "additions of vectors", "limit", [=] { bench_read(from->data(), from->size()); },
          nullptr};
}

std::vector<Contender> read_limits(double bytes, int threads) {
  constexpr double kRead = 4e8;  // of a call, so that starting threads does not count
  const auto from = std::make_shared<std::vector<char>>(static_cast<size_t>(bytes), 1);
  const int times = std::max(1, static_cast<int>(kRead / bytes));
  const auto by = [=](int count) {
    return [=] { bench_read_by(from->data(), from->size(), count, times); };
  };
  return {{"read", "additions of vectors", "limit", by(threads), nullptr, 1.0 / times},
          {"read, one thread", "additions of vectors", "one limit", by(1), nullptr, 1.0 / times}};
}

}  // namespace tiny::bench
