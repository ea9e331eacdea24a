// Reductions of windows that repeat nothing of what they read: depthwise convolutions and poolings.
// Their lanes lie along the rows that the windows move along, or across them, along channels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "ir/target.h"
#include "ir/uop.h"

namespace tiny {

struct WindowRows {
  UOp unfold;       // what takes the windows, of values that end with the rows
  size_t axis = 0;  // of the reduction: the position along a row
  int64_t stride = 1;
  double taps = 1;  // of a window

  const UOp& source() const { return unfold.src(0); }
};

// None if the reduction repeats what it reads, or its windows move along no last axis; nor of
// bytes, which are multiplied in words.
std::optional<WindowRows> window_rows(const UOp& reduce);

// Cycles for a vector of results: of lanes along rows, where the windows' stride sets them apart,
// beyond those of neighbours; and of storing lanes of channels into rows.
double apart_cost(const WindowRows& rows, const Target& target);
double turned_cost(const WindowRows& rows, const Target& target);

// The axis of the source that lanes lie along if not along rows: the longest outside of the
// windows.  None if that is short.
std::optional<size_t> channels_of(const WindowRows& rows);

}  // namespace tiny
