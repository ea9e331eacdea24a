// What a kernel takes as it is to be run: seconds on one target, from the sizes, strides and kinds
// of its ranges alone.
//
// A few resources are counted, as if each were the only one, and what is wanted most of all
// decides: instructions, the units that do arithmetic, load and store, the chain of additions that
// a sum waits for, and the bytes that come from each level of memory (footprint.h).
//
// It ranks lists of options; it does not predict a clock.  A search tells it beside each
// measured time (docs/debugging.md).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "cost/machine.h"
#include "ir/kernel.h"

namespace tiny {

enum class Resource : uint8_t { Issue, Arithmetic, Loads, Stores, Chain, Level2, Level3, Memory };
inline constexpr size_t kResources = 8;

struct Estimate {
  double seconds = 0;                     // of one launch on the target's cores
  std::array<double, kResources> each{};  // seconds of one core, as if the others were free
  int64_t copies = 1;                     // of the value that is repeated most
  int64_t code = 0;                       // instructions, about
  double operator[](Resource r) const { return each[static_cast<size_t>(r)]; }
  Resource bound() const;  // the one that is wanted most
};

std::string_view name_of(Resource resource);
// "163.01 us by arithmetic 117.20, loads 44.10, issue 33.00": the whole, and each resource that
// matters in microseconds, what is wanted most first.
std::string text_of(const Estimate& estimate);

// Steps of a window from which on its loop asks, for each row of a tile, whether there is anything:
// over fewer it is cut where the border lies, or has its steps side by side.
inline constexpr int64_t kTapsMany = 5;
// From so many on the loop is split where the border lies, by the loops outside of it, and only the
// steps ask that lie beyond it for some rows (codegen/linearize/peeling.h).
inline constexpr int64_t kTapsSplit = 24;

// Where a matrix unit forms the products, in `share` of the time that the core's own units take for
// them: what else a kernel does counts as if it were as much faster.
Estimate with_matrix_unit(const Estimate& by_vectors, double share, const Machine& target);

// `kernel` has had its options applied.  Sizes of the run count with the most that they can be.
Estimate estimate(const Kernel& kernel, const Machine& target);

}  // namespace tiny
