// What a kernel takes as it is to be run: seconds on one target, from the sizes, strides and kinds
// of its ranges alone.
//
// A few resources are counted, as if each were the only one, and what is wanted most of all
// decides: instructions, the units that do arithmetic, load and store, the chain of additions that
// a sum waits for, and the bytes that come from each level of memory.  The last by footprints: what
// the loops inside of some depth touch either stays in a cache while they run or comes anew in each
// turn of the loops outside (M. Wolf and M. Lam, A Data Locality Optimizing Algorithm, 1991).
//
// It ranks lists of options; it does not predict a clock.  A search tells it beside each
// measured time (docs/debugging.md).
#pragma once

#include <array>
#include <cstdint>
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

// Steps of a window from which on its loop asks, for each row of a tile, whether there is anything:
// over fewer it is cut where the border lies, or has its steps side by side.
inline constexpr int64_t kTapsMany = 5;

// `kernel` has had its options applied.  Sizes of the run count with the most that they can be.
Estimate estimate(const Kernel& kernel, const Machine& target);

}  // namespace tiny
