// A reduction with a loop outside of its store's loops cannot keep its sum in registers: it adds
// into the destination.  This follows from the order of ranges alone.
#pragma once

#include "ir/kernel.h"

namespace tiny {

struct SplitReduction {
  Kernel kernel;
  UOp outer;  // over the loops outside; its source is a Reduce over those inside; may be no node
  // What each trip but the first adds to the destination, made of its part in the place of `outer`;
  // the first stores the store's value of its part.  No node: parts are added up as they are, and
  // the last trip makes the store's value of the sum.
  UOp added;
};

// `kernel` with such a Reduce as two.  Where the destination cannot hold partial sums, and where no
// reduction has such a loop, it is returned as it is: loops are then opened inside the store's.
SplitReduction split_outer_reduction(const Kernel& kernel);

// Whether the kernel's reduction may be split so, wherever its loops stand.
bool can_add_into_destination(const Kernel& kernel);

}  // namespace tiny
