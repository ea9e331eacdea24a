// Loops of many short steps that end in the middle: a look at the signal now and then.
#pragma once

#include <cstddef>

#include "base/stop.h"

namespace tiny {

// Of steps of less than a microsecond, so many are a fraction of a millisecond.
inline constexpr size_t kStepsPerLook = 1024;

// To be called with each step's number; throws what `stop` (may be null) says.
inline void look_often(const StopSignal* stop, size_t step) {
  if (stop && step % kStepsPerLook == 0) stop->check();
}

}  // namespace tiny
