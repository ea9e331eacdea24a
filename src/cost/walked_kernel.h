// A kernel under its options as its estimate walks it: which of its ranges are loops, copies side
// by side or lanes, where each node stands, and in how many registers its lanes lie.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "cost/access_table.h"
#include "cost/machine.h"
#include "ir/kernel.h"

namespace tiny {

struct WalkedKernel {
  WalkedKernel(const Kernel& of, const Machine& on);
  WalkedKernel(const WalkedKernel&) = delete;
  WalkedKernel& operator=(const WalkedKernel&) = delete;

  // A node with what its walk has found.
  struct Value {
    const UOp& node;
    RangeSet free = 0;
    uint32_t place = 0;
  };
  Value value(uint32_t place) const { return {table.order[place], table.free[place], place}; }
  std::span<const uint32_t> sources(uint32_t place) const {
    return std::span(table.sources).subspan(first[place], table.order[place].src().size());
  }
  double extent(size_t range) const { return table.extents[range]; }
  double product(RangeSet set) const {
    double n = 1;
    for (; set; set &= set - 1) n *= extent(static_cast<size_t>(std::countr_zero(set)));
    return n;
  }
  static double bytes_of(DType dtype) { return static_cast<double>(dtype.bytes()); }
  // Registers that so many lanes take: one at the least.
  double registers(double lanes, DType dtype) const {
    return std::max(1.0, lanes * bytes_of(dtype) / machine.vector_bytes);
  }
  double unit_bytes() const { return std::min(machine.unit_bytes, machine.vector_bytes); }
  // What units compute of so many lanes in turn: one at the least.
  double units(double lanes, DType dtype) const {
    return std::max(1.0, lanes * bytes_of(dtype) / unit_bytes());
  }
  double lanes_of(const Value& u) const { return product(u.free & lanes); }
  double vectors(const Value& u, DType dtype) const { return registers(lanes_of(u), dtype); }

  // The ranges that a node closes.
  RangeSet closed_by(const UOp& u) const;
  // Of the lanes of an access; 0 where they share it.
  int64_t lane_stride(const AccessInfo& a) const;
  // Of an access whose lanes lie side by side in so many bytes, the part that lies in two lines: as
  // its steps and its offset let it, for a buffer begins where a line does.
  double share_across(const AccessInfo& a, double bytes, DType dtype) const;
  // Different places among the copies of an access.
  double copies(const AccessInfo& a) const;

  const Kernel& kernel;
  const Machine& machine;
  const AccessTable table;
  RangeSet loops = 0, unrolled = 0, lanes = 0, words = 0;
  // By place:
  std::vector<const AccessInfo*> accesses;  // null of what is none
  std::vector<uint32_t> first;              // of its sources
};

}  // namespace tiny
