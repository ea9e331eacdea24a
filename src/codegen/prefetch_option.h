// The PREFETCH option: while a loop runs whose steps all read the same block of a parameter, what
// lies after the block is fetched into the cache, as much in each step.
//
// Where each step reads another block (a row that is walked several times), the next step's is
// fetched, in the loops of the last reduction that reads the parameter.
//
// The block is what the loops inside of that loop read, a run of memory: the panel of a matrix that
// rows are multiplied with.  The next one is wanted when the loop is done, and a processor that
// only sees one panel read again does not guess it.
#pragma once

#include "codegen/options.h"

namespace tiny {

// The kernel after `option`; Error{InvalidArgument} says why it does not fit.
Kernel apply_prefetch(const Kernel& kernel, const Option& option);
// Whether it fits.
bool can_prefetch(const Kernel& kernel, const Option& option);

}  // namespace tiny
