// In which order the axes of stored values lie in memory.
//
// Every value that nobody outside sees may have another axis innermost than its last.  Contractions
// with an operand that is not computed here (weights) vote: the reader for the axis that it
// reduces, the writer for the axis along which its columns run, so that a chain of convolutions
// settles on channels last.  The gradient of weights is summed over images and pixels: it votes for
// the columns of both its factors.  What neither reads nor writes a contraction takes the axis that
// its readers have; between as many votes the writer's columns decide.  Windows of which nothing is
// repeated (depthwise convolutions, poolings) want rows where they move along rows of memory that
// the graph was given, and else channels where they move by more than one.
#pragma once

#include <span>

#include "schedule/decide.h"

namespace tiny {

void choose_layouts(Decision& decision, std::span<const UOp> outputs, const Target& target);

}  // namespace tiny
