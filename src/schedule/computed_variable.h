// Sizes that a run computes.
#pragma once

#include "ir/open_size.h"
#include "ir/uop.h"

namespace tiny {

// A Variable whose value a run computes, and what computes it: int64, one element, between the
// variable's bounds; it does not depend on the variable.
struct ComputedVariable {
  UOp variable;
  UOp value;
  // Nothing says how great it may be: there is memory for the value that it has, once it is known.
  bool is_open = false;
};

}  // namespace tiny
