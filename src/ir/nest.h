// The loops of a linear program, short enough to be read: what is filled, computed and stored in
// which loop.  TINY_DEBUG=3 shows it for every kernel.
//
//   threads i0 {
//     fill s0 [8][256] x2                   scratch 0, in loops of 8 and 256, two stores each
//     loop i1 0..min(3, 57 - i0) {          bounds as expressions of the loops outside
//       acc x28                             accumulators begin
//       loop i2 256 { load s0 x2; load p0 x14; fma x28 }
//       store p2 x28
//     }
//   }
//
// What computes addresses and conditions is left out.  Loops are numbered in order of appearance,
// pieces of scratch by their place.
#pragma once

#include <string>

#include "ir/linear.h"

namespace tiny {

// Several lines, each indented by `indent` and two for each loop around it.
std::string nest_text(const LinearProgram& program, int indent = 0);

}  // namespace tiny
