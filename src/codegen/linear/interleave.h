// The last pass over a linear program: the order of what is computed side by side.
//
// Codegen computes one instance of a value after the other.  Where each is a long chain of ops (an
// exponential, an error function, a walk down a tree), a processor waits in the first chain while
// it has no room left to look into the second; op by op across the instances there is always
// something to do.  Order is all that changes: in a piece of a block without loops, ifs and checks,
// ops stand by their distance from its beginning, loads and addresses just before they are wanted.
// Loads and stores of one place keep their order, and so do reads and settings of an accumulator.
//
// Where the chains of all instances would not fit the registers they go in windows of a few, one
// after the other; and where sums of a register tile take the registers, those of later windows
// wait in scratch.
#pragma once

#include "ir/linear.h"
#include "ir/target.h"

namespace tiny {

// Steps of a chain that are more than a processor can look past.
inline constexpr int kLongChain = 12;

// Pieces without a chain of so many steps, and those of which not three chains fit the target's
// registers, stay.
void interleave(LinearProgram& program, const Target& target, int chain_min = kLongChain);

}  // namespace tiny
