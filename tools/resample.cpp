#include <algorithm>
#include <cmath>

#include "picture.h"

namespace tiny::cli {
namespace {

// Pillow's weights of 8-bit pictures are whole numbers of this unit (PRECISION_BITS of its
// Resample.c: 32 bits less those of a pixel, and two for the sum).
constexpr double kWeightUnit = 1 << 22;

// What one point of the result is made of: weights of the points low, low + 1, ..
struct Window {
  int64_t low;
  std::vector<double> weights;  // their sum is 1, or kWeightUnit in whole levels
};

Window window_at(double centre, double reach, int64_t count, bool whole_levels) {
  Window window{std::max<int64_t>(0, static_cast<int64_t>(centre - reach + 0.5)), {}};
  const auto high = std::min<int64_t>(count, static_cast<int64_t>(centre + reach + 0.5));
  double total = 0;
  for (int64_t j = window.low; j < high; ++j) {
    const double distance = std::fabs(static_cast<double>(j) - centre + 0.5) * (1 / reach);
    total += window.weights.emplace_back(std::max(0.0, 1 - distance));
  }
  for (double& weight : window.weights) {
    weight /= total;
    if (whole_levels) weight = std::floor(weight * kWeightUnit + 0.5);
  }
  return window;
}

// One axis resized: `outer` lines of `from` points, `inner` values each, read from [first, last).
std::vector<float> resize_axis(const std::vector<float>& in, int64_t outer, int64_t from,
                               int64_t inner, double first, double last, int64_t to,
                               bool whole_levels) {
  std::vector<float> out(static_cast<size_t>(outer * to * inner));
  const double step = (last - first) / static_cast<double>(to), reach = std::max(step, 1.0);
  for (int64_t i = 0; i < to; ++i) {
    const double centre = first + (static_cast<double>(i) + 0.5) * step;
    const Window window = window_at(centre, reach, from, whole_levels);
    for (int64_t line = 0; line < outer; ++line) {
      for (int64_t k = 0; k < inner; ++k) {
        double sum = 0;
        for (size_t j = 0; j < window.weights.size(); ++j)
          sum += window.weights[j] *
                 in[static_cast<size_t>(
                     (line * from + window.low + static_cast<int64_t>(j)) * inner + k)];
        if (whole_levels) sum = std::clamp(std::floor(sum / kWeightUnit + 0.5), 0.0, 255.0);
        out[static_cast<size_t>((line * to + i) * inner + k)] = static_cast<float>(sum);
      }
    }
  }
  return out;
}

}  // namespace

Pixels resample(const Pixels& in, const Part& part, int64_t height, int64_t width,
                bool whole_levels) {
  if (height == in.height && width == in.width) return in;
  Pixels out{height, width, in.channels, {}};
  const auto rows = resize_axis(in.values, in.height, in.width, in.channels, part.left,
                                part.left + part.width, width, whole_levels);
  out.values = resize_axis(rows, 1, in.height, width * in.channels, part.top,
                           part.top + part.height, height, whole_levels);
  return out;
}

}  // namespace tiny::cli
