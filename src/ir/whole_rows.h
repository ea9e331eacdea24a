// Large matrices whose rows are multiplied as they lie in memory, some side by side, each walked to
// its end: a vector of less than a line reads them from the last cache faster than anything that
// lies in panels.
#pragma once

#include "ir/target.h"

namespace tiny {

inline constexpr int64_t kLineBytes = 64;
// Rows this far apart fall into the same sets of a cache.
inline constexpr int64_t kPageBytes = 4096;
inline constexpr int64_t kWholeRows = 8;       // of memory, walked side by side,
inline constexpr int64_t kWholeRowMin = 1024;  // if they have so many elements

// Whether so many rows of memory are enough, and long enough.
inline bool can_walk_whole_rows(int64_t rows, int64_t columns) {
  return columns >= kWholeRowMin && rows > kWholeRows && rows % kWholeRows == 0;
}

// Whether they come faster so from the last cache than in panels.
inline bool comes_in_whole_rows(const Target& target) {
  return target.vector_bytes < kLineBytes;
}

}  // namespace tiny
