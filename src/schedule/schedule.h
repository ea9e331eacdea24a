// From a tensor graph to an ordered list of kernels: which values become buffers, and which share a
// kernel.
//
// Rules, in short (docs/ARCHITECTURE.md has the reasons): views, constants and casts never become
// buffers unless asked for; a reduction is never computed twice; elementwise work joins the
// reduction that feeds it; what would be computed several times is stored where that is cheaper;
// the parts of a concatenation are stored straight into their slices.  Decisions depend on shapes,
// the graph and target data only.
#pragma once

#include <span>
#include <vector>

#include "ir/kernel.h"
#include "ir/target.h"
#include "ir/uop.h"
#include "shape/view.h"

namespace tiny {

struct ScheduledKernel {
  Kernel kernel;
  std::vector<UOp> values;  // per parameter slot: a Buffer, or a node with a buffer of its own
  std::vector<UOp> stored;  // the nodes that this kernel completes or adds to
};

struct Schedule {
  std::vector<ScheduledKernel> kernels;  // each after what it reads
  std::vector<UOp> stored;               // nodes that need a buffer, row-major in their own shape
};

// The base of every output is stored: an output that is a view of a buffer needs no kernel.  A node
// with a buffer already (Node::realized) is read, not computed.
// `fusion` off: kernels are not joined.
Schedule make_schedule(std::span<const UOp> outputs, const Target& target, bool fusion = true);

// Whether a node holds memory: a Buffer, or realised before.
bool has_memory(const UOp& node);

}  // namespace tiny
