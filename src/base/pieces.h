// Work on many bytes that ends in the middle: piece by piece, with a look at the signal in between.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/stop.h"

namespace tiny {

// Bytes that are copied, written or looked at in a few milliseconds, pages that are new included.
inline constexpr int64_t kPieceBytes = 4 << 20;

// Calls body(offset, size) for one piece after the other, each of a whole number of `unit` bytes;
// throws what `stop` (may be null) says.
template <class Body>
void for_each_piece_of(int64_t bytes, int64_t unit, const StopSignal* stop, Body body) {
  const int64_t most = std::max(kPieceBytes / unit, int64_t{1}) * unit;
  for (int64_t at = 0; at < bytes; at += most) {
    if (stop) stop->check();
    body(at, std::min(most, bytes - at));
  }
}

}  // namespace tiny
