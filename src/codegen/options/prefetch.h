// The PREFETCH option: what a later step of loops will read is fetched into the cache meanwhile.
//
// The block of a parameter is what one step of the option's loop reads: runs of memory that lie
// evenly apart, as far as the loops inside walk them, or the fill of a stage.  Where all steps of
// the loop read the same block (a panel that tiles of rows are multiplied with, a tile of rows and
// its panels), each fetches a part of the next one: that of the innermost loop outside whose steps
// are blocks.  Where each step reads another, the next step's is fetched.  A parameter that is only
// stored is fetched in the step that stores it, since a sum may be added to it.
//
// A loop that a reduction or a stage closes is a stream: each of its steps fetches what a step some
// kilobytes later reads.
//
// Lines are spread over the loops of the longest reduction, few in a step: many at once hold up
// what the step itself reads.
#pragma once

#include "codegen/options/options.h"

namespace tiny {

// The kernel after `option`; Error{InvalidArgument} says why it does not fit.
Kernel apply_prefetch(const Kernel& kernel, const Option& option);
// Whether it fits.
bool can_prefetch(const Kernel& kernel, const Option& option);

}  // namespace tiny
