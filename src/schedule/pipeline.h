// The passes over a tensor graph before it is cut into kernels, in one table.  Programs, training
// steps and what is computed at once (realize) run the same rows: what is the same in every run is
// said by the context, and only a program has memory for it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "cost/machine.h"
#include "ir/uop.h"
#include "schedule/rewrite/changed_graph.h"
#include "schedule/rewrite/constant_values.h"
#include "schedule/rewrite/copy_walked.h"
#include "schedule/rewrite/winograd.h"

namespace tiny {

// Plans are kept by the graph that the passes of the first stage leave of a program.
enum class GraphStage : uint8_t { Graph, Kernels };

enum class PassUse : uint8_t { Always, Programs };

// A pass that ran.
struct GraphPassNote {
  const char* name;
  double seconds;
  bool changed;
  std::span<const UOp> roots;  // as it left them
};

struct GraphPassContext {
  const Machine& machine;
  // The first so many roots are outputs of a program, in memory of their own; unused without
  // `compute`.
  size_t outputs = 0;
  // Gives values that are the same in every run of a program memory.  Empty: the graph runs once.
  std::function<void(const std::vector<UOp>&)> compute = {};
  IsFixed is_fixed = [](const UOp&) { return false; };
  MappedBytes mapped_bytes = [](const UOp&) { return int64_t{0}; };
  WinogradUse winograd = WinogradUse::WhereFaster;
  bool pack = true;                                      // constants are laid out anew
  std::function<void(const GraphPassNote&)> noted = {};  // called after each pass, if not empty

  bool is_program() const { return compute != nullptr; }
};

struct GraphPass {
  const char* name;
  GraphStage stage;
  PassUse use;
  // Whether the pass may change a graph with such a node: others are not walked again.
  bool (*concerns)(const UOp& node);
  ChangedGraph (*run)(std::span<const UOp> roots, const GraphPassContext& context);
  std::array<std::string_view, 3> needs;  // the passes before that it builds on; the rest is empty
};

// In the order in which they run.
std::span<const GraphPass> graph_passes();

// What the passes of a stage leave of the roots.
ChangedGraph run_graph_passes(std::span<const UOp> roots, GraphStage stage,
                              const GraphPassContext& context);

}  // namespace tiny
