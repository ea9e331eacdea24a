// The OVERLAP option on the linear program: a loop whose steps walk several loops one after the
// other (a row's maximum, its exponentials, its quotients) walks them as one, each for another
// step.
//
//   for r: A(r) B(r) C(r)   becomes   for t: C(t-2) B(t-1) A(t), in one loop
//
// While one step stores, the next computes and the one after that is read, so that memory and
// arithmetic are never idle in turns.  Values that a step hands from one loop to the next wait in
// registers, what it keeps in scratch is read just before the next step overwrites it.  The first
// and last steps, where some of the loops have nothing to do, run the loops apart.  Order is all
// that changes: every element is computed from the same ones by the same ops.
#pragma once

#include "ir/linear.h"

namespace tiny {

// Rewrites every marked loop (LinearOp::aux of Loop) where that keeps what the program computes,
// and takes the marks off.
void overlap_steps(LinearProgram& program);

}  // namespace tiny
