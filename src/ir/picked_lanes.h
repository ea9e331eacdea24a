// Elements that are picked out of registers: lanes that lie a few elements apart are loaded as
// whole registers, and rows whose columns follow each other stored as such.
#pragma once

#include <cstdint>

#include "ir/target.h"

namespace tiny {

inline constexpr int64_t kWovenBytes = 4;  // of an element of rows that are woven

// Whether the target has an instruction that picks lanes out of two registers, of a whole line.
inline bool weaves(const Target& target) {
  constexpr int64_t kLine = 64;  // bytes
  return target.vector_bytes >= kLine;
}

// Whether lanes `apart` elements apart are picked out of as many registers, two at a time.  Of more
// than there are lanes to load one by one it would take longer.
constexpr bool are_picked_by_twos(int64_t apart, int64_t lanes, int64_t bytes) {
  constexpr int64_t kApart = 4;  // for any number of lanes
  constexpr int64_t kBytes = 2;  // of an element; there is no such instruction for smaller ones
  return bytes >= kBytes && (apart <= kApart || 2 * apart < lanes);
}

// Whether these registers are blended and their lanes then put in order: where no instruction picks
// out of two (AVX2), words alone.
constexpr bool are_blended(int64_t apart, int64_t lanes, int64_t bytes) {
  constexpr int64_t kApart = 4;  // of 8 apart there are as many registers as lanes
  constexpr int64_t kLanes = 4;  // of a register of 16 bytes: fewer fill none
  return bytes == kWovenBytes && apart <= kApart && lanes >= kLanes;
}

// Whether the target loads lanes so many elements apart in one of these ways.
inline bool are_picked(const Target& target, int64_t apart, int64_t lanes, int64_t bytes) {
  return weaves(target) ? are_picked_by_twos(apart, lanes, bytes)
                        : are_blended(apart, lanes, bytes);
}

// Whether `rows` rows of so many lanes, of which each lane is stored `stride` elements from the one
// before, are stored as vectors of elements of all rows: fewer than a square is worth.
constexpr bool are_woven(int64_t rows, int64_t lanes, int64_t stride) {
  return rows > 1 && 2 * rows < lanes && stride == rows;
}

// Rows whose lanes lie apart, an element of one after the same of another: so many at most make a
// square of bytes, of words as many as a vector has lanes.
inline constexpr int64_t kByteRows = 16;

// Whether so many such rows are turned in registers and their columns stored; fewer, lane by lane.
constexpr bool are_turned(int64_t rows, int64_t bytes) {
  return rows >= (bytes == kWovenBytes ? 2 : kByteRows / 2);
}

}  // namespace tiny
