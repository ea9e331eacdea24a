// How a kernel walks memory: for each load and store, its stride along each range.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ir/kernel.h"

namespace tiny {

// The stride of an access along a range that is no affine part of its index (a gathered row).
inline constexpr int64_t kOpaqueStride = INT64_MAX;

struct AccessInfo {
  UOp node;
  uint32_t place = 0;  // in the table's order
  bool store = false;
  bool inside_reduction = false;
  std::vector<int64_t> strides;  // elements, per position in the kernel's ranges
  double elements = 1;           // that it touches
  double span = 1;               // elements from the first of these to the last
  double offset = 0;             // elements, of the constants in its index
};

struct ClosureInfo {  // a Reduce or a Store: what closes ranges
  UOp node;
  bool store = false;
  uint64_t own = 0;    // the ranges that it closes, by position
  uint64_t below = 0;  // all the ranges that its value is computed over
};

// Nodes are known by their places in the order, so that who looks at all of them hashes nothing.
struct AccessTable {
  std::vector<UOp> order;         // all nodes, sources first
  std::vector<RangeSet> free;     // of each: the ranges below it that nothing below it closes
  std::vector<uint32_t> sources;  // the places of the sources of each, one node after the other
  NodeTable<uint32_t> places;     // of nodes
  std::vector<AccessInfo> accesses;
  std::vector<ClosureInfo> closures;
  std::vector<double> extents;  // of the ranges; symbolic ones at their usual largest
  int64_t widest_bytes = 1;     // of the element types that lanes would hold
  uint64_t opaque = 0;          // ranges inside an index that is no sum of ranges
  uint64_t checked = 0;         // of these, such that a check asks along
  uint64_t compared = 0;        // ranges along which a comparison asks for indices in lanes
  uint64_t gathered = 0;  // of these, such that lanes may gather along: what is read is the index

  bool may_hold_lanes(size_t range) const { return !((opaque & ~gathered) >> range & 1); }
  // Of a full vector along a range: where lanes gather, or an index is checked or compared by its
  // remainder, indices lie in lanes too.
  int64_t lanes_along(size_t range, int64_t vector_bytes) const {
    const bool has_indices = ((gathered | checked | compared) >> range & 1) != 0;
    return vector_bytes / (has_indices ? std::max(kInt64.bytes(), widest_bytes) : widest_bytes);
  }
  RangeSet free_of(const UOp& u) const { return free[places.at(u.node())]; }
};

AccessTable access_table(const Kernel& kernel);

}  // namespace tiny
