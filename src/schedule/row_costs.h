// What a kernel costs beside what it reads and stores, under any loops over rows.
//
// reads: the kernel's loops and the machine.
#pragma once

#include <span>
#include <vector>

#include "cost/machine.h"
#include "schedule/kernel_loops.h"

namespace tiny {

inline constexpr double kComputedRows = 14;  // rows of a tile that are computed before a product

// Whether a load reads memory that the graph was given, as it lies.  `values`: by parameter slot.
bool is_given(const UOp& load, std::span<const UOp> values);

class RowCosts {
 public:
  // Both must outlive it.
  RowCosts(const KernelLoops& loops, const Machine& machine);

  // Arithmetic of one launch, in multiply-adds: what is inside a reduction counts for each of its
  // iterations.
  double work() const;
  // Beyond that, arithmetic on the operands of a product that its tiles repeat: neither of two
  // computed values is packed, so that what one of them is made of is made anew for each tile of
  // the other.  `values`: by parameter slot.
  double work_again(std::span<const UOp> values) const;
  // Beyond that, arithmetic on the rows of a product: lanes lie along the matrix' columns, so that
  // what rows are made of is computed element by element; so are products of rows that are looked
  // up for each element.
  double work_by_element(std::span<const UOp> values) const;
  // Whether a product with weights has computed rows that are neither staged for all columns nor
  // read side by side as well as stored ones: they lie in pieces which fill no tile (a picture's
  // windows), or what is side by side is of several rows (a gradient, for weights).
  bool has_scattered_rows(std::span<const UOp> values) const;
  // Whether a product's factor is made of sums of its own rows: staged for a tile of rows or made
  // anew for each tile, as the kernel's list says.
  bool has_factor_of_sums() const;
  // Whether rows have sums of products beside each other, each over ranges of its own: apart each
  // has lanes and turns as its elements want them.
  bool has_products_beside() const;
  // Seconds less for values of rows that are wanted again: they are computed once and kept in
  // scratch.
  double staging_saves() const;
  // Bytes that a product's register tiles read and store beside its operands: in pieces of rows,
  // each far from the last.
  std::vector<double> tile_streams() const;
  // Seconds more than all cores would take, if the stores have no loop in common to share.
  double alone_seconds() const;

 private:
  double work_of(const UOp& u) const;  // itself, without what it is made of
  // Whether the steps of a computed factor of a product lie apart from each other.
  bool has_steps_apart(const UOp& factor, RangeSet steps) const;
  // Whether what a reduction reads is at places that are no sums of the ranges around it.
  bool has_gathered_operand(const UOp& reduce) const;

  const KernelLoops& loops_;
  const Machine& machine_;
  double registers_ = 1;  // that as many elements take as have one of the rated width
};

}  // namespace tiny
