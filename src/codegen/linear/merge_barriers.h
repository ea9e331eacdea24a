// Barriers that order nothing go.
//
// needs:  a grouped program whose Shared ops each name a piece of the group's memory by its offset.
// leaves: of the barriers around fills one that separates every two accesses of a piece, one of
//         which stores.
#pragma once

#include "ir/linear.h"

namespace tiny {

void merge_barriers(LinearProgram& program);

}  // namespace tiny
