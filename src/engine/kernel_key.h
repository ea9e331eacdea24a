// What decides the code of a kernel, or the plan for a graph, as bytes: the same in every process.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cost/machine.h"
#include "ir/kernel.h"

namespace tiny {

// The structure of a kernel: nodes in topological order, ranges, facts, parameters, variables.
std::string kernel_key(const Kernel& kernel);

// The structure of a tensor graph, down to the nodes that have memory.
struct GraphKey {
  std::string bytes;
  std::vector<UOp> order;       // its nodes, sources before users
  std::vector<UOp> leaves;      // of these, the nodes with memory, as the bytes number them
  std::vector<Origin> origins;  // of its nodes: whose work they do, in order; part of the bytes
                                // is which nodes share one
  bool has_calls = false;       // of functions of the host, which a key does not tell apart
  bool has_writes = false;      // then more than the structure decides: which memory is one
  // Whether what is made of the graph is kept for others of the same key.
  bool is_kept() const { return !has_writes && !has_calls; }
};
// `inputs` are the leaves that runs bind, in order.
GraphKey graph_key(std::span<const UOp> roots, std::span<const UOp> inputs,
                   std::span<const UOp> variables);

// Everything that choices and codegen may ask.
std::string machine_key(const Machine& machine);

}  // namespace tiny
