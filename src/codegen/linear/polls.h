// Where a kernel asks whether it is to leave early (Op::Poll): so that what takes long can be ended
// in the middle, at no cost that could be measured.
//
// A kernel has an amount of work, which its loops use up as they turn: a subtraction and a branch
// beside hundreds of ops, never in a loop of few.  Such a loop, where it is long, turns in parts,
// with the same steps in the same order.  Only when the amount is used up does the kernel ask; then
// it begins anew.  A kernel that does not need so much in all is left as it is.
#pragma once

#include <cstdint>

#include "ir/linear.h"

namespace tiny {

// Numbers of ops, in which loads and stores are counted by what they may cost.
struct PollSpacing {
  // Between two questions: 50 microseconds of vectors in registers, a few milliseconds of loads
  // from memory or of the interpreter.
  int64_t between = 1 << 19;
  // Of a loop's turn, beside which counting it costs nothing.
  double turn = 1000;
  // Of the parts in which a loop of shorter turns is counted; a loop of fewer is not.
  double part = 1 << 16;
  // Of a block that are counted where they are if it is not certain that they are done.
  double uncertain = 1000;
};

// `threads_extent`: of the range that threads share; not above 0: not known.  Nothing may move ops
// out of loops or into them afterwards.
void place_polls(LinearProgram& program, int64_t threads_extent, const PollSpacing& spacing = {});

}  // namespace tiny
