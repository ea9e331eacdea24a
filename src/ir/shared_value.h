// Values that a kernel computes over several ranges that are equal up to renaming: the exponential
// of a softmax, wanted for the sum and again for the quotient.  A stage computes such a value once.
#pragma once

#include <optional>
#include <vector>

#include "ir/kernel.h"

namespace tiny {

// How many of the first ranges everything that closes ranges lies inside of.
size_t common_outer_ranges(const Kernel& kernel);

// Makes the ranges that every reduction and store lies inside of the outermost ones, in their
// order: the rows of a softmax along a leading axis.
void put_rows_outermost(Kernel& kernel);

// The least work, in multiply-adds, of a value that is worth keeping: reading it back is not free.
inline constexpr double kWorkWorthKeeping = 6;
// The values of a tile of rows that are kept at once when products make them.
inline constexpr double kStagesOfRows = 3;

struct SharedValue {
  UOp value;                // as the reduction computes it
  int64_t number = 0;       // among the kernel's nodes, sources first
  double work = 0;          // multiply-adds that make one element
  double elements = 1;      // of it in one launch, symbolic sizes at their largest
  int64_t again = 1;        // how often it is wanted beside
  std::vector<UOp> images;  // it, and the same over other ranges; only from find_shared_values
};

// The value over ranges from position `place` on that a reduction computes, that takes at least
// `work_min`, and that is wanted again over other ranges: of several the one that saves the most
// work; none if there is none.
std::optional<SharedValue> find_shared_value(const Kernel& kernel, size_t place, double work_min);

// All of them, each as if those before it were kept already.
std::vector<SharedValue> find_shared_values(const Kernel& kernel, size_t place, double work_min);

}  // namespace tiny
