// The way from a tensor graph to a plan: found, if a graph of its structure came before, or
// scheduled, compiled and laid out.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/context.h"
#include "engine/disk_cache.h"
#include "engine/kernel_key.h"
#include "engine/program.h"
#include "ir/uop.h"
#include "schedule/computed_variable.h"

namespace tiny {

struct GraphRequest {
  std::span<const UOp> roots;
  // The first so many roots are outputs, each with memory of its own; < 0: what the roots are views
  // of is.
  int64_t outputs = -1;
  std::span<const UOp> inputs;  // Buffer nodes that a run binds
  std::span<const UOp> variables;
  // Those whose values the run computes: of a program the last roots.
  std::span<const ComputedVariable> computed = {};
};

struct GraphPlan {
  GraphKey key;
  Plan plan;                 // with the memory that it captures
  std::vector<UOp> outputs;  // what each output of the plan holds
  int64_t copies = 0;        // see Schedule
  int64_t copied_bytes = 0;
  double schedule_seconds = 0;
  double compile_seconds = 0;

  // The plan's key in the disk cache; empty if it is not kept there.
  std::string key_on_disk(Context& context) const;
  std::vector<Ref<Storage>> memory() const;  // of the graph's leaves
};

GraphPlan plan_graph(Context& context, const GraphRequest& request);

// Their texts.
std::vector<std::string> origin_texts(Context& context, std::span<const Origin> origins);

// The plan of a file in the disk cache, for leaves with this memory; none if it is not there.  What
// the bundle has is not read.
std::optional<Plan> stored_plan(Context& context, const std::string& file,
                                std::span<const Ref<Storage>> leaves, const DiskBundle& bundle);

// A program of the context.
Ref<Program> make_program(Context& context, Plan plan);

}  // namespace tiny
