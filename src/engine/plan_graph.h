// The way from a tensor graph to a plan: found, if a graph of its structure came before, or
// scheduled, compiled and laid out.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/context.h"
#include "engine/program.h"
#include "ir/uop.h"

namespace tiny {

struct GraphRequest {
  std::span<const UOp> roots;
  // The first so many roots are outputs, each with memory of its own; < 0: what the roots are views
  // of is.
  int64_t outputs = -1;
  std::span<const UOp> inputs;  // Buffer nodes that a run binds
  std::span<const UOp> variables;
};

struct GraphPlan {
  Plan plan;                 // with the memory that it captures
  std::vector<UOp> outputs;  // what each output of the plan holds
  int64_t copies = 0;        // see Schedule
  int64_t copied_bytes = 0;
  double schedule_seconds = 0;
  double compile_seconds = 0;
};

GraphPlan plan_graph(Context& context, const GraphRequest& request);

// A program of the context.
Ref<Program> make_program(Context& context, Plan plan);

}  // namespace tiny
