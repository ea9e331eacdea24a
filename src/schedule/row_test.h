// Whether the kernel that a join makes can run as loops over rows.
//
// reads: the kernel's loops and the machine.
#pragma once

#include "cost/machine.h"
#include "schedule/kernel_loops.h"

namespace tiny {

inline constexpr double kRowTileMin = 4;  // rows that go through a chain of products at once

class RowTest {
 public:
  // Both must outlive it.
  RowTest(const KernelLoops& loops, const Machine& machine) : loops_(loops), machine_(machine) {}

  // What any kernel that reads so many buffers wants: few enough of them, few enough operations to
  // compile, tiles of its products.
  bool may_be_one(size_t inputs) const;
  // Whether it can run as loops over rows: each row is read, reduced and written while it is in
  // cache.  Without reductions: whether it is small enough.
  bool passes(size_t inputs) const;
  // Whether a kernel of products and of reductions of their rows can run as loops over tiles of
  // rows: what the tile has in common is kept in scratch (codegen/choose/row_tiles.cpp).
  bool passes_as_tiles(size_t inputs) const;
  // Whether it is a product weighed by sums along the same steps (attention), which run along
  // blocks: what a group of threads shares of them is a block's.
  bool runs_along_blocks(size_t inputs) const;
  // The same where it has to: no cache holds a tile of its rows, made or read.
  bool is_along_blocks_alone(size_t inputs) const;
  // Whether several stores can share the kernel's loops: the ranges of each are the first ones of
  // the kernel, a product is made for all of them, and no value is chosen by its position.
  bool stores_share_loops() const;

 private:
  bool looks_up_operands() const;
  bool is_weighing() const;
  // The ranges that all values and results have.
  RangeSet common() const;
  bool keeps_its_products(RangeSet common) const;
  bool holds_rows(RangeSet columns, DType dtype) const;
  bool fits(double rows) const;

  const KernelLoops& loops_;
  const Machine& machine_;
};

}  // namespace tiny
