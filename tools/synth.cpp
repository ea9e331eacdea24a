#include <cmath>
#include <cstring>
#include <numbers>

#include "failure.h"
#include "inputs.h"

namespace tiny::cli {
namespace {

// The generator "SplitMix64": a counter, mixed.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t bits() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return z ^ z >> 31;
  }
  // In [0, 1), a multiple of 2^-24: every float32 of it is exact.
  double uniform() { return static_cast<double>(bits() >> 40) * 0x1p-24; }
  double normal() {
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  uint64_t state_;
};

double uniform_for(tiny_dtype dtype, Random& random) {
  if (dtype == TINY_FLOAT32) return random.uniform();
  if (dtype == TINY_FLOAT16 ||
      dtype == TINY_BFLOAT16)  // few digits: 1 must not come out by rounding
    return std::floor(random.uniform() * 256) / 256;
  if (is_float(dtype)) return random.uniform();
  const auto bits = random.bits() >> 56;
  if (dtype == TINY_UINT8) return static_cast<double>(bits);
  if (dtype == TINY_INT8) return static_cast<double>(bits) - 128;
  return static_cast<double>(bits & 1);
}

}  // namespace

void synthesise(Array& array, const std::string& kind, uint64_t seed, size_t index) {
  Random random(seed * 0x100000001B3 + index);
  const size_t count = array.count();
  const auto fill = [&](const auto& value) {
    if (array.dtype == TINY_FLOAT32) {  // nearly all of what is synthesised
      for (size_t i = 0; i < count; ++i) {
        const auto element = static_cast<float>(value(i));
        std::memcpy(array.bytes.data() + i * sizeof(float), &element, sizeof(float));
      }
      return;
    }
    for (size_t i = 0; i < count; ++i) array.put(i, value(i));
  };
  if (kind == "uniform")
    fill([&](size_t) { return uniform_for(array.dtype, random); });
  else if (kind == "normal" && is_float(array.dtype))
    fill([&](size_t) { return random.normal(); });
  else if (kind == "normal")
    fill([&](size_t) { return std::nearbyint(random.normal()); });
  else if (kind == "arange")
    fill([](size_t i) { return static_cast<double>(i); });
  else if (kind == "ones" || kind == "zeros")
    fill([&](size_t) { return kind == "ones" ? 1.0 : 0.0; });
  else
    throw usage_failure("--synth knows no '" + kind + "'");
}

}  // namespace tiny::cli
