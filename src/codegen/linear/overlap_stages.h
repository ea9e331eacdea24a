// What a step of a loop is made of, for its stages to run side by side with those of other steps:
// the loops that all of its elements pass through, what each stage reads of earlier ones, and
// whether memory allows it.
#pragma once

#include <cstddef>
#include <optional>
#include <unordered_map>
#include <vector>

#include "ir/linear.h"

namespace tiny {

// Ops from `begin` to before `end` of the program.
struct OpSpan {
  LinearId begin = 0;
  LinearId end = 0;
  bool holds(LinearId id) const { return id >= begin && id < end; }
};

// One loop of a step and what follows it.  Stage 0 has what precedes it as well.
struct OverlapStage {
  OpSpan loop;                     // from its Loop to after its EndLoop
  OpSpan after;                    // up to the next stage's loop
  std::vector<LinearId> copied;    // ops of earlier stages that depend on the step's number alone
  std::vector<LinearId> declared;  // accumulators of earlier stages that only this one uses
};

// A value that later stages read so many steps later.
struct CarriedValue {
  LinearId value = 0;
  size_t home = 0;
  size_t steps = 0;
};

struct OverlapStages {
  LinearId loop = 0;  // over the steps
  LinearId end = 0;   // its EndLoop
  std::vector<OverlapStage> stages;
  std::unordered_map<LinearId, size_t> moved;  // accumulators to the stage that uses them
  std::vector<CarriedValue> carried;

  bool is_inside(LinearId id) const { return id > loop && id < end; }
  // The stage whose steps an op of the loop belongs to.
  size_t stage_of(LinearId id) const;
  bool is_in_loop(LinearId id) const { return stages[stage_of(id)].loop.holds(id); }
  bool is_stage_loop(LinearId id) const;
  // The ops in the loop around that a prefetch is made of, in order.
  std::vector<LinearId> address_ops(const std::vector<LinearOp>& ops, LinearId prefetch) const;
};

// None if the loop's steps cannot overlap.
std::optional<OverlapStages> find_overlap_stages(const LinearProgram& program, LinearId loop);

}  // namespace tiny
