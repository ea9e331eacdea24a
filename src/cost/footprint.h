// What loops touch of memory, and the bytes that come from each level for it: what runs inside of
// some depth either stays in a cache while the loops around it turn, or comes anew in each of their
// turns (M. Wolf and M. Lam, A Data Locality Optimizing Algorithm, 1991).
#pragma once

#include <array>
#include <limits>
#include <span>

#include "cost/access_table.h"
#include "cost/machine.h"

namespace tiny {

inline constexpr double kLine = 64;       // bytes
inline constexpr double kCounted = 1e15;  // more is not told apart

// A range along which an access goes on.
struct Axis {
  double stride, extent;  // elements, and how many of them
};

class Axes {
 public:
  void add(double stride, double extent) { axes_[count_++] = {stride, extent}; }
  // By stride.
  std::span<const Axis> sorted();

 private:
  std::array<Axis, std::numeric_limits<RangeSet>::digits> axes_;  // so many of them are set
  size_t count_ = 0;
};

// How many different places axes reach, the nearest first: steps of a window meet others'.
class Places {
 public:
  void add(const Axis& axis);
  bool empty() const { return step_ == 0; }
  double count() const { return step_ > 0 ? before_ * (last_ / step_ + 1) : 1; }

 private:
  double before_ = 1;           // of axes further in
  double step_ = 0, last_ = 0;  // of those that meet, and from the first place to the last
};

// Bytes that come out of each level.
struct LevelBytes {
  double level2 = 0, level3 = 0, memory = 0;
};

// Of what is touched in these loops, outermost first, of which each turn runs over `inside`;
// `extents` are those of all ranges.
LevelBytes traffic(std::span<const AccessInfo* const> touched, std::span<const size_t> loops,
                   RangeSet inside, std::span<const double> extents, const Machine& machine);

}  // namespace tiny
