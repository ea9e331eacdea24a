// The STAGE option: a value memoised in scratch as a function of ranges inside a place.
//
// The value is a load (of a parameter with one load, up to renaming of ranges) or any value by its
// number.  Where the same value is wanted over other ranges of the same sizes, all share the stage;
// a reduction that computes it anyway fills it in its own loop, otherwise it has ranges of its own.
// An index of a load that sums several ranges whose steps overlap (a window) is one dimension, over
// the interval that the sum covers.
#pragma once

#include "codegen/options/options.h"

namespace tiny {

// Where a shared stage begins in a group's memory.
inline constexpr int64_t kSharedLine = 64;

// The kernel after `option`; Error{InvalidArgument} says why it does not fit.
Kernel apply_stage(const Kernel& kernel, const Option& option);

// Of scratch, for all stages.
int64_t staged_bytes(const Kernel& kernel);
// Of those that a group shares.
int64_t shared_bytes(const Kernel& kernel);
// What a stage that the group shares begins at a multiple of.
int64_t shared_line(const Kernel& kernel, const UOp& stage);
// What a group needs of its memory: these, and that through which its threads fold.
int64_t group_bytes(const Kernel& kernel);

}  // namespace tiny
