// What threads of a group do to the memory that they share, step by step, without values: whether
// each read is of what was written, and behind a barrier if another thread wrote it; whether each
// write is behind a barrier after what others did there; and whether nobody touches bytes to which
// a copy is under way.
//
// One group is walked as the interpreter runs it, indices and conditions that follow from
// constants, variables and the thread alone as they are; a loop of many steps its first and last
// ones, with as many between as keep the remainders that its body asks for.  What depends on data
// is not judged.
#pragma once

#include <string>

#include "ir/linear.h"

namespace tiny {

// The first hazard in words; empty: there is none, or the program is too long to be walked.
std::string find_hazard(const LinearProgram& program);

// Error{Internal} that tells it.
void verify_hazards(const LinearProgram& program);

}  // namespace tiny
