#include "cost/footprint.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <tuple>
#include <vector>

namespace tiny {

namespace {

// Of Zen 5, as the cycles of estimate.cpp.
constexpr double kNearLines = 4;  // lines side by side from which on they are fetched ahead
constexpr double kFarLine = 2.5;  // what a line that is not fetched ahead costs, in such
constexpr double kUsable = 0.75;  // of a cache
constexpr int64_t kPage = 4096;   // bytes, after which the sets of the first level repeat
constexpr int64_t kWays = 16;     // lines of a set of the second

RangeSet bit_of(size_t range) {
  return RangeSet{1} << range;
}

double element_bytes(const AccessInfo& a) {
  return static_cast<double>((a.store ? a.node.src(1) : a.node).dtype().bytes());
}

// The lines that an access touches as some ranges run.
struct Footprint {
  double bytes = 0;     // of whole lines
  bool is_near = true;  // many lie side by side: they are fetched ahead
  int64_t apart = 0;    // bytes, between runs that do not lie side by side; 0: there is one
  double run = 1;       // lines of a run
  // Of a cache whose sets repeat after `way` bytes, 0 of one where they do not matter: runs so far
  // apart share few of them.
  double room(int64_t way) const {
    if (apart == 0 || way == 0) return bytes;
    const auto sets = static_cast<double>(way) / kLine;
    const int64_t places = way / std::gcd(apart, way);
    const double used = std::min(sets, static_cast<double>(places) * run);
    return bytes / kLine <= used ? bytes : bytes * sets / used;
  }
};

Footprint footprint(const AccessInfo& a, RangeSet set, std::span<const double> extents) {
  const double bytes = element_bytes(a);
  // Ranges by stride: what steps overlap, or go on where others end, is one run.
  Axes axes;
  double opaque = 1;
  for (RangeSet left = set; left; left &= left - 1) {
    const auto i = static_cast<size_t>(std::countr_zero(left));
    const int64_t stride = a.strides[i];
    if (stride == 0 || extents[i] == 1) continue;
    if (stride == kOpaqueStride)
      opaque *= extents[i];
    else
      axes.add(std::abs(static_cast<double>(stride)), extents[i]);
  }
  Footprint out;
  double span = 1;  // from the first element to the last, of what is one run so far
  Places runs;
  for (const Axis& axis : axes.sorted()) {
    const double gap = axis.stride * bytes;
    if (runs.empty() && axis.stride <= span + (gap < kLine ? kLine / bytes : 0)) {
      span += axis.stride * (axis.extent - 1);
      continue;
    }
    out.apart = std::gcd(out.apart, static_cast<int64_t>(std::min(gap, kCounted)));
    runs.add(axis);
  }
  const double others = runs.count();
  const double lines = std::ceil(span * bytes / kLine);
  out.run = lines;
  out.is_near = lines >= kNearLines || others * opaque == 1;
  // At most all of it: in as many lines as a run's elements take, and no more than lie between
  // the first and the last.
  const double whole = std::max(a.elements, 1.0) * lines / span;
  const double between = std::ceil(a.span * bytes / kLine) + 1;
  const double all = std::max(std::min(whole, between), 1.0);
  out.bytes = std::min(others * opaque * lines, all) * kLine;
  return out;
}

// The footprints of what is touched, of what runs inside of each depth of some loops.
class Depths {
 public:
  Depths(std::span<const AccessInfo* const> touched, std::span<const size_t> loops, RangeSet inside,
         std::span<const double> extents)
      : count_(touched.size()), loops_(loops), extents_(extents), of_(count_ * (loops.size() + 1)) {
    for (size_t d = loops.size() + 1; d-- > 0;) {
      if (d < loops.size()) inside |= bit_of(loops[d]);
      for (size_t k = 0; k < count_; ++k) {
        // It touches the same all the while if it does not step with the loop.
        const AccessInfo& a = *touched[k];
        const bool steps =
            d == loops.size() || (a.strides[loops[d]] != 0 && extents[loops[d]] != 1);
        of_[d * count_ + k] = steps ? footprint(a, inside, extents) : of_[(d + 1) * count_ + k];
      }
    }
  }

  // Bytes that come into a cache from the level behind it; `is_far`: lines that are not fetched
  // ahead cost more.
  double into(int64_t capacity, int64_t way, bool is_far) const {
    size_t fits = loops_.size();
    while (fits > 0 && fits_at(fits - 1, capacity, way)) --fits;
    if (fits == 0) return 0;  // it is there from the last time
    // The loop around goes on in the same lines, or stays; further out all comes anew.
    double turns = 1;
    for (size_t d = 0; d + 1 < fits; ++d) turns *= extents_[loops_[d]];
    const bool is_crowded =
        way != 0 && fits == loops_.size() && !fits_at(loops_.size(), capacity, way);
    double all = 0;
    for (size_t k = 0; k < count_; ++k) {
      const Footprint& walked = at(fits - 1, k);
      // What shares its sets with itself is not there any more when a step comes back to it.
      const Footprint& step = at(fits, k);
      const bool is_lost = is_crowded && step.room(way) > static_cast<double>(capacity);
      const double bytes = is_lost ? step.bytes * extents_[loops_[fits - 1]] : walked.bytes;
      all += bytes * (!is_far || walked.is_near ? 1 : kFarLine);
    }
    return all * turns;
  }

 private:
  const Footprint& at(size_t depth, size_t k) const { return of_[depth * count_ + k]; }
  bool fits_at(size_t depth, int64_t capacity, int64_t way) const {
    double room = 0;
    for (size_t k = 0; k < count_; ++k) room += at(depth, k).room(way);
    return room <= static_cast<double>(capacity) * kUsable;
  }

  size_t count_;
  std::span<const size_t> loops_;
  std::span<const double> extents_;
  std::vector<Footprint> of_;
};

// Whether two accesses walk the same lines, a few elements apart.
bool share_lines(const AccessInfo& a, const AccessInfo& b) {
  if (a.node.src(0) != b.node.src(0) || a.store != b.store || a.strides != b.strides) return false;
  if (std::ranges::find(a.strides, kOpaqueStride) != a.strides.end()) return false;
  return std::abs(a.offset - b.offset) * element_bytes(a) < kLine;
}

// One of all that walk the same lines, in their order.
std::vector<const AccessInfo*> by_lines(std::span<const AccessInfo* const> touched) {
  std::vector<size_t> order(touched.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t k) {
    return std::tuple(touched[k]->node.src(0).node(), touched[k]->store, touched[k]->offset, k);
  });
  const auto rest = std::ranges::unique(
      order, [&](size_t a, size_t b) { return share_lines(*touched[a], *touched[b]); });
  order.erase(rest.begin(), rest.end());
  std::ranges::sort(order);
  std::vector<const AccessInfo*> out;
  for (const size_t k : order) out.push_back(touched[k]);
  return out;
}

}  // namespace

std::span<const Axis> Axes::sorted() {
  std::ranges::sort(axes_.data(), axes_.data() + count_, {}, &Axis::stride);
  return {axes_.data(), count_};
}

void Places::add(const Axis& axis) {
  const bool meets =
      step_ > 0 && axis.stride <= last_ + step_ && std::fmod(axis.stride, step_) == 0;
  if (!meets) {
    before_ = count();
    step_ = axis.stride;
    last_ = 0;
  }
  last_ += axis.stride * (axis.extent - 1);
}

LevelBytes traffic(std::span<const AccessInfo* const> touched, std::span<const size_t> loops,
                   RangeSet inside, std::span<const double> extents, const Machine& machine) {
  if (touched.empty()) return {};
  const std::vector<const AccessInfo*> apart = by_lines(touched);
  const Depths depths(apart, loops, inside, extents);
  return {.level2 = depths.into(machine.l1_bytes, kPage, false),
          .level3 = depths.into(machine.l2_bytes, machine.l2_bytes / kWays, true),
          .memory = depths.into(machine.l3_bytes, 0, true)};
}

}  // namespace tiny
