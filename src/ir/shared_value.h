// Values that a kernel computes over several ranges that are equal up to renaming: the exponential
// of a softmax, wanted for the sum and again for the quotient.  A stage computes such a value once.
#pragma once

#include <optional>

#include "ir/kernel.h"

namespace tiny {

// How many of the first ranges everything that closes ranges lies inside of.
size_t common_outer_ranges(const Kernel& kernel);

// Makes the ranges that every reduction and store lies inside of the outermost ones, in their
// order: the rows of a softmax along a leading axis.
void put_rows_outermost(Kernel& kernel);

struct SharedValue {
  UOp value;            // as the reduction computes it
  int64_t number = 0;   // among the kernel's nodes, sources first
  double work = 0;      // multiply-adds that make one element
  double elements = 1;  // of it in one launch, symbolic sizes at their largest
};

// The value over ranges from position `place` on that takes the most work, at least `work_min`, is
// computed by a reduction, and is wanted again over other ranges; none if there is none.
std::optional<SharedValue> find_shared_value(const Kernel& kernel, size_t place, double work_min);

}  // namespace tiny
