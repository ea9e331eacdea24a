// A kernel: a DAG of kernel-stage nodes and one list, the order of its ranges.  There are no
// statements and no loop nodes; where a value is computed follows from its free ranges.
//
//   Range   size                    int64 0 <= r < size; argument: its number in this kernel
//   Load    param, index.., symbolic..   element of a buffer's view (argument: ViewArg); zero where
//   an
//                                   index is out of range of its axis
//   Reduce  value, ranges..         folds value over the ranges
//   MatrixTerm  a, b, n, c, m, k    a * b where column n of the result is column c of b, else 0: a
//                                   term of a sum over c, k and the other steps of k's products,
//                                   which a warp forms together by a row of base/matrix.h
//                                   (argument); m and k: halves of rows and steps
//   Stage   value, ranges..         value memoised as a function of its ranges; argument: StageArg
//   Index   stage, expressions..    that function applied
//   Running value, range, needed [, scale]  folds values along a range, step by step: what it is
//                                   after this step; what was folded before is multiplied by scale
//                                   first; steps for which needed < 0 change nothing
//   Before  running                 what it was before this step; nothing in the first one
//   Last    running, range          what it is after the last step
//   Store   param, value, index.., symbolic..   a root
//   Place   index, step             as an index of a Store, and of Loads of what it stores to: one
//                                   that data gives.  Out of range of its axis nothing is stored;
//                                   several steps may name one element: they run in their order,
//                                   and each loads what those before have stored
//   Check   bool, position          a root: what must hold for every element
//
// A view's kSymbolicDim entries (shape, then strides, then offset) follow the indices as sources.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ir/dtype.h"
#include "ir/node_map.h"
#include "ir/rebuild.h"
#include "ir/uop.h"

namespace tiny {

// Thread: workers, or groups of threads; Local: the threads of a group.  Dot: the steps of a word
// (ir/dot.h), which one instruction takes.
enum class RangeKind : uint8_t { Loop, Upcast, Unroll, Vec, Thread, Dot, Local };
const char* name_of(RangeKind kind);  // "loop"
inline constexpr size_t kGroupAxes = 3;

struct KernelRange {
  UOp range;
  RangeKind kind = RangeKind::Loop;
  bool reduced = false;   // closed by a Reduce
  bool overlaps = false;  // the loops inside run side by side, for different steps, where they can
  uint8_t axis = 0;       // Local: of the group; ranges of one axis are one thread's coordinate
  uint8_t rooms = 1;  // for what a group shares inside: copies run so many steps ahead, less one
};

struct KernelParam {
  DType element;
  bool read = false;
  bool written = false;
  bool bypass = false;  // what is stored is not wanted soon: it may pass the caches
};

// What may be wanted soon: fetched in the innermost loop that its index depends on.
struct KernelPrefetch {
  UOp param;
  UOp index;  // of an element of its buffer; it need not be there
  DType element;
};

struct Kernel {
  std::string name;
  std::vector<UOp> roots;
  std::vector<KernelRange> ranges;  // outer to inner
  std::vector<UOp> facts;           // int64 expressions known >= 0: what a split leaves out
  std::vector<KernelParam> params;
  std::vector<KernelPrefetch> prefetches;
  std::vector<UOp> variables;  // Variable nodes, in the order of their values at launch

  // The position in `ranges` of a Range node.
  size_t position(const UOp& range) const;
  // The position of the range with this number; ranges.size() if there is none.
  size_t find_range(int64_t number) const;
  int64_t next_range_number() const;
};

using RangeSet = uint64_t;  // bit i: the kernel's range i
constexpr RangeSet bit(size_t position) {
  return RangeSet{1} << position;
}

// The ranges below each node that no Reduce or Stage below it closes.
using FreeRanges = NodeTable<RangeSet>;
// Whether a node closes ranges, its sources from the second on.
inline bool closes_ranges(const UOp& u) {
  return u.op() == Op::Reduce || u.op() == Op::Stage || u.op() == Op::Last;
}
// Where a walk ends that stays within the loops of a root: what a stage holds is computed apart.
inline bool is_stage(const UOp& u) {
  return u.op() == Op::Stage;
}
// Adds `roots` and all below them to `known`; the nodes must outlive it.
void add_free_ranges(const Kernel& kernel, std::span<const UOp> roots, FreeRanges& known);
// Whether each value has lanes along one range at most, and so has what closes ranges: a sum counts
// lanes along those that its value does not depend on too.
bool has_lanes_of_one_range(const Kernel& kernel);

// Whether a node is a sum of products of matrices that a warp forms together.
inline bool is_matrix_sum(const UOp& u) {
  return u.op() == Op::Reduce && u.src(0).op() == Op::MatrixTerm;
}
// The columns of operands that products read from what the group shares: no thread has a value for
// them.  None where no product does.
RangeSet shared_columns(const Kernel& kernel);

// The Local ranges.
RangeSet local_ranges(const Kernel& kernel);
// Whether it is computed by groups of threads: it has Local ranges, or stages that they share.
bool is_grouped(const Kernel& kernel);
// How many of the first ranges are Thread: the launch's range is their product.
size_t thread_ranges(const Kernel& kernel);

// Whether values run along a range, below which are these nodes.
bool runs_along(std::span<const UOp> nodes, const UOp& range);
// The ranges that the steps of Places are made of, and those along which values run whose steps are
// stored: their loops stay loops, in their order.
RangeSet ordered_ranges(const Kernel& kernel);
// Whether it stores where data says.
bool stores_by_index(const Kernel& kernel);

// Every root, fact and prefetched index as `make` makes the nodes below; ranges stay as they are.
void map_kernel(Kernel& kernel, const MakeNode& make);

// The same in another graph, for another thread: a graph and its nodes are one thread's.
Kernel copy_kernel(const Kernel& kernel, Graph& graph);

// "loop r0:64; reduce r1:32/upcast .." and the roots as expressions.
std::string to_string(const Kernel& kernel);

}  // namespace tiny
