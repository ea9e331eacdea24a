// Whether the kernel that a join makes can run as loops over rows, and what it costs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cost/machine.h"
#include "ir/kernel.h"

namespace tiny {

// Positions that a value is chosen by where the values may share work.
inline constexpr int64_t kChoicesMax = 8;

class RowTest {
 public:
  // The kernel and the machine must outlive it.
  RowTest(const Kernel& kernel, const Machine& machine);

  // Seconds less for values of rows that are wanted again: they are computed once and kept in
  // scratch.
  double staging_saves() const;
  // Whether several stores can share the kernel's loops: the ranges of each are the first ones of
  // the kernel, a product is made for all of them, and no value is chosen by its position.
  bool stores_share_loops() const;
  // Bytes that a product's register tiles read and store beside its operands: in pieces of rows,
  // each far from the last.
  std::vector<double> tile_streams() const;
  // Reductions, and whether one of them is a product, which wants register tiles of its own.
  int64_t reductions() const;
  bool has_product() const;
  // Arithmetic of one launch, in multiply-adds: what is inside a reduction counts for each of its
  // iterations.
  double work() const;
  // Beyond that, arithmetic on the operands of a product that its tiles repeat: neither of two
  // computed values is packed, so that what one of them is made of is made anew for each tile of
  // the other.  `values`: by parameter slot.
  double work_again(std::span<const UOp> values) const;
  // Seconds more than all cores would take, if the stores have no loop in common to share.
  double alone_seconds() const;
  // Whether a kernel that reads so many buffers can run as loops over rows: each row is read,
  // reduced and written while it is in cache.  Without reductions: whether it is small enough.
  bool passes(size_t inputs) const;
  // Whether a kernel of products and of reductions of their rows can run as loops over tiles of
  // rows: what the tile has in common is kept in scratch (codegen/choose/row_tiles.cpp).
  bool passes_as_tiles(size_t inputs) const;
  // Seconds that each worker adds if a reduction inside another, the same for every output, is
  // computed once before the loops; none if the kernel is not of that kind.
  std::optional<double> operand_seconds(size_t inputs) const;
  // Seconds of a product of a matrix with values that a reduction of a window makes for each row
  // (a depthwise convolution), through tiles of rows; none if the kernel is not of that kind.
  struct ComputedRows {
    double filled = 0;  // the windows' steps, on one core
    bool is_filtered = false;
    double panels = 0;  // reading the matrix for each tile, from where it is read then
  };
  std::optional<ComputedRows> computed_rows(size_t inputs) const;

 private:
  double widest_bytes() const;
  bool looks_up_operands() const;
  RangeSet last_range() const;
  bool may_be_one(size_t inputs) const;
  double extent(RangeSet set) const;
  double work_of(const UOp& u) const;  // itself, without what it is made of
  double walked_elements(const UOp& load, RangeSet ranges) const;
  RangeSet walked(const UOp& load) const;
  // `splits`: a range that is split into several indices counts with the values of each, so that
  // heads that share what they read are seen.
  bool is_contraction(const UOp& reduce, bool splits = false) const;
  bool is_weighing() const;
  bool keeps_its_products(RangeSet common) const;
  bool fits(double rows) const;
  RangeSet closed(const UOp& reduce) const;
  std::optional<RangeSet> rows_of_factor(const UOp& inner, const UOp& outer) const;

  const Kernel& kernel_;
  const Machine& machine_;
  std::vector<UOp> nodes_;
  FreeRanges free_;
  double registers_ = 1;  // that as many elements take as have one of the rated width
};

}  // namespace tiny
