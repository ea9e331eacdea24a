// From tensor-graph nodes to a program that computes them for inputs bound per run.
#pragma once

#include <span>
#include <vector>

#include "engine/context.h"
#include "engine/program.h"
#include "ir/uop.h"
#include "schedule/computed_variable.h"

namespace tiny {

// A stand-in for a row-major input of `count` elements: a Buffer node without memory, unlike any
// other.  `source`: what gives it its elements where no caller does; it lives as long as the node.
UOp make_input(Context& context, DType dtype, const Dim& count, Ref<RefCounted> source = {});

// Whether a node is such a stand-in.
bool is_input(const UOp& node);
// Of such a stand-in; null for one that callers set.
RefCounted* source_of(const UOp& input);

struct CompiledProgram {
  Ref<Program> program;
  double schedule_seconds = 0;
  double compile_seconds = 0;
  double init_seconds = 0;   // computing what depends on no input
  int64_t weight_bytes = 0;  // captured memory
  int64_t cached = 0;        // kernels that an earlier program had compiled
};

// What a program has of tensors that are neither inputs nor outputs.
struct Captured {
  bool is_constant = true;        // nothing else writes to their memory: values may be kept
  std::span<const UOp> versions;  // that the program makes in place, in every run
};

// Output k of the program holds outputs[k], row-major, in memory of its own.  `variables` are the
// Variable nodes that may stand in it.  What depends on no input is computed now, once (the init
// tape), and captured.  The values of `computed`, which are among the variables, are computed by
// every run: memory is for their greatest ones, or made by the run, for those that are open.
CompiledProgram compile_program(Context& context, std::span<const UOp> outputs,
                                std::span<const UOp> inputs, std::span<const UOp> variables = {},
                                const Captured& captured = {},
                                std::span<const ComputedVariable> computed = {});

// The versions that are yet to be written below `outputs` and what is written beside them and along
// with them (begin_writes_along), older ones first.
std::vector<UOp> pending_versions(Context& context, std::span<const UOp> outputs,
                                  std::span<const UOp> inputs);
// The writes belong to a program from now on: the tensors have what their memory holds, whatever
// runs of the program leave there.  Error{InvalidArgument}, before anything is changed, if a tensor
// has later writes.
void take_versions(Context& context, std::span<const UOp> versions);

}  // namespace tiny
