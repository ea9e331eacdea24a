// Ops on element types that no target computes in, float16, bfloat16 and the integers below 32
// bits: the functions that decompositions.cpp names.  Each returns no node for wider types.
#pragma once

#include "ir/pattern.h"

namespace tiny {

// An elementwise op in float32 or int32, rounded or wrapped to its dtype again.
UOp computed_wide(const Match& m);
// A Reduce that accumulates in float32 or int32.
UOp reduced_wide(const Match& m);
// A Cast by steps that targets have; also to bool of any type.
UOp cast_through_wide(const Match& m);
// Max and Min: of 16-bit floats a comparison and a choice, which keeps the bits of what it takes.
UOp extremum_of_narrow(const Match& m);
// Neg and Abs: of 16-bit floats on their bits.
UOp sign_of_narrow(const Match& m);
// Where: of 16-bit floats on their bits; of narrow integers as it is.
UOp choice_of_narrow(const Match& m);

}  // namespace tiny
