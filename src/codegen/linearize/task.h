// What the lineariser closes: a Store, Check, Reduce, Stage, Running or Last, and the loops that it
// still needs.
#pragma once

#include <span>
#include <vector>

#include "ir/kernel.h"
#include "ir/linear.h"

namespace tiny {

struct Task {
  UOp node;
  RangeSet todo = 0;
  RangeSet own = 0;                    // the ranges it closes
  std::vector<LinearId> accumulators;  // Reduce: one per instance; Stage: its scratch
};

using Tasks = std::span<Task* const>;

}  // namespace tiny
