// From a schedule to a plan: slots for every value, the arena, the tape.
#pragma once

#include <span>
#include <vector>

#include "engine/context.h"
#include "engine/program.h"
#include "schedule/computed_variable.h"
#include "schedule/schedule.h"

namespace tiny {

// What the program's slots are to be: nodes that stay fresh outputs, in order; nodes that are bound
// per run.  Everything else that has memory is captured, the rest lives in the arena.
struct PlanRequest {
  std::span<const UOp> outputs;  // stored nodes
  std::span<const UOp> inputs;   // Buffer nodes
  std::span<const UOp> variables;
  std::span<const ComputedVariable> computed = {};  // those whose values the run computes
  std::span<const UOp> leaves;  // nodes with memory, which number the captured slots
  double runs = 1;              // of the plan, about
};

// The elements of the buffer that a schedule gives a node.
Dim elements_of(const UOp& node, const Schedule& schedule);
// The bytes of that buffer, symbolic sizes at their largest.
int64_t bytes_of(const UOp& node, const Schedule& schedule);

// Compiles the schedule's kernels and lays out their values.
Plan make_plan(Context& context, const Schedule& schedule, const PlanRequest& request);

// Offsets for intervals of time [first, last] with sizes, so that what overlaps in time does not in
// memory: largest first, lowest gap that fits; behind all others where they are very many.  Returns
// the total.
struct Lifetime {
  int64_t bytes = 0;
  int64_t first = 0;
  int64_t last = 0;
  int64_t offset = 0;  // out
};
int64_t place_lifetimes(std::vector<Lifetime>& lifetimes, const ArenaLayout& layout);
// The largest sum of sizes alive at one time.
int64_t peak_bytes(const std::vector<Lifetime>& lifetimes);

}  // namespace tiny
