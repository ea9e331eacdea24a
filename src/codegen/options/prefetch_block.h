// The block of lines that the PREFETCH option fetches, as a lattice: a run of memory, repeated.
//
// reads: the option's loop and the access to its parameter.
#pragma once

#include <vector>

#include "codegen/options/prefetch_access.h"

namespace tiny {

struct PrefetchBlock {
  // Lines, or what is made of them, that lie evenly apart.
  struct Dimension {
    int64_t stride;  // elements
    int64_t size;
  };
  std::vector<Dimension> lattice;
  Affine first;        // where it begins, by ranges
  int64_t ahead = 0;   // elements from a block to the next
  int64_t rounds = 1;  // of the option's loop, all of which have one block
  int64_t reach = 1;   // elements from a block's first to its last line
};

// What one step of the option's loop reads or stores, and how far the next such block is: a step
// of the innermost loop outside whose steps are blocks.  What is stored is wanted in the same step.
PrefetchBlock find_prefetch_block(const PrefetchRequest& request, const PrefetchLoop& loop,
                                  const PrefetchAccess& access);
// The same of a loop of one value's: each of its steps fetches all that one some steps later reads.
PrefetchBlock find_prefetch_step(const PrefetchRequest& request, const PrefetchLoop& loop,
                                 const PrefetchAccess& access);

}  // namespace tiny
