// What a kernel's nodes are under its ranges: which they depend on, how often they run, what they
// walk through.
//
// reads: the kernel.
#pragma once

#include <vector>

#include "ir/kernel.h"

namespace tiny {

inline bool is_reduce(const UOp& u) {
  return u.op() == Op::Reduce;
}

class KernelLoops {
 public:
  // The kernel must outlive it.
  explicit KernelLoops(const Kernel& kernel);

  const Kernel& kernel() const { return kernel_; }
  const std::vector<UOp>& nodes() const { return nodes_; }
  // The ranges that a node depends on.
  RangeSet free(const UOp& u) const { return free_.at(u.node()); }
  // Whether it is read, or made of what is.
  bool is_data(const UOp& u) const { return data_.contains(u.node()); }
  // The ranges that are reduced by some reduction, and by this one.
  RangeSet reduced() const;
  RangeSet closed(const UOp& reduce) const;
  // The innermost range that is not reduced: neighbours in what is stored.
  RangeSet last_range() const;

  double extent(RangeSet set) const;
  // The ranges along which a load moves through memory: a stride of 0 repeats.
  RangeSet walked(const UOp& load) const;
  double walked_bytes(const UOp& load) const;
  // Whether what follows along one of these ranges lies side by side.
  bool has_neighbours(const UOp& load, RangeSet along) const;
  double stored_bytes(const UOp& store) const;
  // Of the widest value that is computed in lanes.
  double widest_bytes() const;

  // Reductions, and whether one of them is a product, which wants register tiles of its own.
  int64_t reductions() const;
  bool has_product() const;
  // A reduction whose operands are read more than once: it wants register tiles of its own.
  // `splits`: a range that is split into several indices counts with the values of each, so that
  // heads that share what they read are seen.
  bool is_contraction(const UOp& reduce, bool splits = false) const;
  // Whether a value is one of a few, by its position.
  bool chooses_by_position() const;

 private:
  double walked_elements(const UOp& load, RangeSet ranges) const;

  const Kernel& kernel_;
  std::vector<UOp> nodes_;
  FreeRanges free_;
  NodeSet data_;  // what is read, and what is made of it
};

// Bytes of the elements that a machine's rate is told by.
inline constexpr double kRatedBytes = 4;
// Positions that a value is chosen by where the values may share work.
inline constexpr int64_t kChoicesMax = 8;

}  // namespace tiny
