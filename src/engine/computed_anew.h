// Values in memory that depend on what a program writes.
//
// A graph may have been computed in part before it is compiled: a weight's norm was looked at.  If
// the program writes the weight, each run must compute the norm of what it finds, and not read what
// it was once.  Who means that memory builds on the tensor after it was computed, or on a clone.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "base/ref.h"
#include "engine/context.h"
#include "ir/uop.h"

namespace tiny {

// As long as it lives, values below `outputs` that are made of what a program with these outputs
// and inputs writes have no memory.
class ComputedAnew {
 public:
  ComputedAnew(const Context& context, std::span<const UOp> outputs, std::span<const UOp> inputs);
  ComputedAnew(const ComputedAnew&) = delete;
  ComputedAnew& operator=(const ComputedAnew&) = delete;
  ~ComputedAnew();

 private:
  std::vector<std::pair<UOp, Ref<RefCounted>>> hidden_;  // with the memory that they get back
};

// Notes of which memory a value was computed: its tensor does not keep the expression.
void note_origin(const UOp& computed);
// Error{InvalidArgument} where an output is in memory, computed of what the versions replace: every
// run would give what it was once.
void require_computed_by_runs(std::span<const UOp> outputs, std::span<const UOp> versions);

}  // namespace tiny
