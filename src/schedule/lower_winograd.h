// What a kernel computes for an element of a Winograd node (shape/winograd.h).
#pragma once

#include <cstdint>
#include <span>

#include "ir/uop.h"
#include "shape/winograd.h"

namespace tiny {

// The result at a position of a tile of which these are the operands, row by row.  All results are
// written out and chosen among by position, so that a kernel in which the positions are unrolled
// loads each operand once.
UOp winograd_value(const WinogradTransform& transform, std::span<const UOp> operands,
                   const UOp& row, const UOp& column);

// About as many operations as that is made of.
int64_t winograd_ops(const WinogradTransform& transform);

}  // namespace tiny
