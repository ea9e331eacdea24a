// Loops that run where a mask leaves something: the last keys that a causal row sees, the first of
// a sliding window.
//
// A mask is a choice by position of what changes nothing (codegen/linearize/needed_terms.h).  For a
// tile of rows the steps that any of them needs are those of some blocks, which all loops along
// these steps walk: those that reduce, and those that fill stages that nothing else reads.  The
// first such block is always walked, so that a row that a mask leaves nothing of stays what it was.
#pragma once

#include "ir/kernel.h"

namespace tiny {

// Adds a fact for each such loop.
void leave_out_masked_blocks(Kernel& kernel);

}  // namespace tiny
