// Conditions of pads that what lies below them says once more: a load is zero where an index leaves
// its axis.
#pragma once

#include <vector>

#include "ir/uop.h"
#include "shape/shape.h"

namespace tiny {

// Leaves out those that hold wherever `value` is not zero anyway: comparisons of indices that
// follow from the range of the load, and from the choices above it of a value or zero.
void leave_out_checked(const UOp& value, std::vector<UOp>& conditions);

// Whether `value`, a padded value of this shape at `index`, is zero outside of it by itself.
bool is_zero_outside(const Shape& shape, const UOp& value, const std::vector<UOp>& index);

}  // namespace tiny
