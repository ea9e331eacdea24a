// From a tensor graph to an ordered list of kernels: which values become buffers, and which share a
// kernel.
//
// Rules, in short (docs/architecture/schedule.md has more): views, constants and casts never become
// buffers unless asked for; a reduction is never computed twice; elementwise work joins the
// reduction that feeds it; what would be computed several times is stored where that is cheaper;
// the parts of a concatenation are stored straight into their slices.  Decisions depend on shapes,
// the graph and target data only.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "cost/machine.h"
#include "ir/kernel.h"
#include "ir/uop.h"
#include "schedule/join.h"
#include "shape/view.h"

namespace tiny {

// A node that a kernel completes or adds to.
struct ScheduledStore {
  UOp value;
  UOp destination;  // whose buffer it is stored to
  View view;        // which part of that
};

struct ScheduledKernel {
  Kernel kernel;
  std::vector<UOp> values;  // per parameter slot: a Buffer, or a node with a buffer of its own
  std::vector<ScheduledStore> stores;  // one for each of the kernel's stores, in their order
  // What it reads: the elements [first, last] of `base`, none of what it only waits for; in place:
  // each at the address that the kernel stores to, for that element, and before it does.
  struct Read {
    UOp base;
    std::pair<int64_t, int64_t> elements;
    bool in_place = false;
    UOp load;
  };
  std::vector<Read> reads;
  // The Call that the host computes; then the kernel has parameters, variables and a name alone,
  // and a store for each output that is read.
  UOp call = {};
  const ScanLoop* scan = nullptr;     // of whose steps it is a part
  const ScanLoop* segment = nullptr;  // the same or around it, where the run counts the steps
};

// What is left of a scan's nodes: the Scans that something reads.
struct ScheduledScan {
  const ScanLoop* loop = nullptr;
  std::vector<UOp> results;  // one at least; their sources are the scan's stores
};

struct Schedule {
  std::vector<ScheduledKernel> kernels;  // each after what it reads; a scan's follow each other
  std::vector<ScheduledScan> scans;
  std::vector<UOp> stored;  // nodes that need a buffer
  BufferSizes elements;     // of those whose buffer is larger than their value
  int64_t copies = 0;       // of old versions, made because a write came too early
  int64_t copied_bytes = 0;
};

// The base of every output is stored: an output that is a view of a buffer needs no kernel.  A node
// with a buffer already (Node::realized) is read, not computed.  Writes (After, Assign) happen in
// the buffer that their version comes from, in order: every kernel sees the version that it reads,
// if need be as a copy.
// `fusion` off: kernels are not joined, and every buffer is row-major.  The joins' `stop` is
// checked between kernels too.
Schedule make_schedule(std::span<const UOp> outputs, const Machine& target, bool fusion = true,
                       const JoinSettings& joins = {});

// Whether a node holds memory: a Buffer, or realised before.
bool has_memory(const UOp& node);
// What that memory is known by.
const RefCounted* memory_of(const UOp& node);

}  // namespace tiny
