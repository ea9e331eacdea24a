// What the tests of random kernels share: choices that a seed repeats, and how far sums may be
// apart.
#pragma once

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "base/text.h"
#include "shape/shape.h"

namespace tiny::testing {

// The same choices for the same seed.
class Choices {
 public:
  explicit Choices(uint64_t seed) : random_(seed) {}

  // 0 to n - 1.
  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  bool chance(int64_t percent) { return below(100) < percent; }
  // Small, around the sizes of tiles, or larger.
  int64_t size(int64_t largest) {
    static constexpr int64_t kEdges[] = {1, 2, 3, 7, 14, 15, 16, 17, 31, 32, 33, 48, 64, 65};
    const int64_t n = chance(50) ? kEdges[below(std::ssize(kEdges))] : 1 + below(largest);
    return std::min(n, largest);
  }
  void shuffle(Ints& list) { std::shuffle(list.begin(), list.end(), random_); }

 private:
  std::mt19937_64 random_;
};

// What values may be off by whose sums round: sums in another order differ by a share of what is
// summed, however much of it cancels (Higham, Accuracy and Stability of Numerical Algorithms, 4.2).
// `magnitudes` are those of the terms of each value, added, or of the value itself.
inline std::vector<float> slack_of(const std::vector<float>& magnitudes, float share) {
  std::vector<float> slack;
  slack.reserve(magnitudes.size());
  for (float m : magnitudes) slack.push_back(share + share * std::abs(m));
  return slack;
}

// The first value that is further from what it should be than its slack; none: exactly.
inline std::string difference(const std::vector<float>& got, const std::vector<float>& want,
                              const std::vector<float>& slack) {
  if (got.size() != want.size()) return cat(got.size(), " values, not ", want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    const float most = slack.empty() ? 0 : slack.at(i);
    if (!(std::abs(got[i] - want[i]) <= most))
      return cat("element ", i, " of ", got.size(), " is ", got[i], ", not ", want[i],
                 most == 0 ? std::string() : cat(" within ", most));
  }
  return "";
}

}  // namespace tiny::testing
