// What operands cost that are computed for the reduction that reads them.
//
// reads: the kernel's loops, its test and its costs, and the machine.
#pragma once

#include <optional>
#include <span>

#include "cost/machine.h"
#include "schedule/kernel_loops.h"
#include "schedule/row_costs.h"
#include "schedule/row_test.h"

namespace tiny {

class OperandCosts {
 public:
  // All must outlive it.
  OperandCosts(const KernelLoops& loops, const RowTest& test, const RowCosts& costs,
               const Machine& machine)
      : loops_(loops), test_(test), costs_(costs), machine_(machine) {}

  // Seconds that each worker adds if a reduction inside another, the same for every output, is
  // computed once before the loops; none if the kernel is not of that kind.
  std::optional<double> operand_seconds(size_t inputs) const;
  // Seconds of a product of a matrix with values that a reduction of a window makes for each row
  // (a depthwise convolution), through tiles of rows; none if the kernel is not of that kind.
  struct ComputedRows {
    double filled = 0;  // the windows' steps, on one core
    bool is_filtered = false;
    double panels = 0;  // reading the matrix for each tile, from where it is read then
    // Loading what the windows are of lane by lane, where memory that was given has the steps that
    // lanes lie along apart.
    double by_element = 0;
  };
  // `values`: by parameter slot.
  std::optional<ComputedRows> computed_rows(std::span<const UOp> values) const;

 private:
  std::optional<RangeSet> rows_of_factor(const UOp& inner, const UOp& outer) const;

  const KernelLoops& loops_;
  const RowTest& test_;
  const RowCosts& costs_;
  const Machine& machine_;
};

}  // namespace tiny
