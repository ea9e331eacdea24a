// Copies that run ahead: in a loop that is marked so, what a group shares has several rooms, a
// ring, and each step fills the room of a later step while all compute from their own.
//
//   before:  loop i { barrier; fill(i); barrier; compute }
//   after:   for the first steps s: { if s < end fill(s) into room s; commit }
//            loop i { wait for all but the last groups; barrier;
//                     if i + ahead < end fill(i + ahead) into room (i + ahead) % rooms; commit;
//                     compute from room i % rooms }
//
// One barrier a step is enough: what it fills is the room of the step before, with which all are
// done.  A store of what was just loaded becomes a CopyAsync where threads copy 4, 8 or 16 bytes
// side by side; what is computed on the way is stored as before.
//
// Steps of nothing but products of what a group shares leave one group of these under way, so that
// there is always one to be formed:
//            loop i { wait for copies; barrier; products from room i % rooms, a group;
//                     fill(i + ahead) as above; wait for all groups of products but this one }
// The step before may still read its room then, and what is filled is that of two steps ago: copies
// run one step less ahead.
//
// needs: a grouped program as the lineariser leaves it.  runs here because: merge_barriers must see
// the barriers that are left, and merge_equal the copies' equal indices.
#pragma once

#include "ir/linear.h"

namespace tiny {

void run_copies_ahead(LinearProgram& program);

}  // namespace tiny
