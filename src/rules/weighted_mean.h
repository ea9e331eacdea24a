// Sums whose terms are weighted by exponentials over their own sum (a softmax, then a product):
//
//   sum of (e / sum of e) * v   becomes   (sum of e * v) / sum of e
//
// so that rows are divided once they are summed and no weight is computed for its own sake.  Only
// where the exponentials' arguments are never positive and the sum is over the same ones: weights
// are at most 1 then, and the sum of e * v is at most that of all |v|.
#pragma once

#include <span>
#include <vector>

#include "ir/uop.h"

namespace tiny {

// The roots of a kernel that has its transcendentals still, with such quotients taken out of sums.
std::vector<UOp> divide_after_sums(std::span<const UOp> roots);

}  // namespace tiny
