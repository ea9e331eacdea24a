// The order in which the sums of a register tile are added to, and loads are read.
//
// Codegen adds the terms of one step to all sums, then those of the next.  What steps share (rows
// that the taps of a window read again) waits in registers beside all the sums from step to step.
// Where that does not fit the target's registers, what is shared is read by all sums that want it
// as soon as it is there, by each for the step that it has come to, and done with.  Each sum's own
// order stays, and so do its bits.
//
// What is stored is made result by result.  Where results share more loads than there are registers
// (the tiles of a convolution), each load is read by all that is ready for it instead.
#pragma once

#include "ir/linear.h"
#include "ir/target.h"

namespace tiny {

void order_sums(LinearProgram& program, const Target& target);

}  // namespace tiny
