// The rule of a loop: a loop over the same steps, from the last one on.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "autograd/adjoint.h"
#include "engine/context.h"
#include "ir/uop.h"

namespace tiny {

// What reached a loop's results, by output of all steps and by last state; no node where nothing
// did.
struct LoopAdjoints {
  std::vector<UOp> outputs;
  std::vector<UOp> states;
};

// What the loop of `scan`, one of its results, gives to the nodes outside that its steps are made
// of: its sequences, the states before its first step, and what is the same in all steps.  Of
// these, those that `changes` says.  Error{Unsupported} for a loop whose steps the run counts, and
// for a branch.
std::vector<std::pair<UOp, Adjoint>> loop_adjoints(const Ref<Context>& context, const UOp& scan,
                                                   const LoopAdjoints& reached,
                                                   const std::function<bool(const UOp&)>& changes);

}  // namespace tiny
