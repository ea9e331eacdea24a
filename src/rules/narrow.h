// Ops on element types that no target computes in, floats and integers below 32 bits: the functions
// that decompositions.cpp names.  Each returns no node for wider types.
#pragma once

#include <span>
#include <vector>

#include "ir/pattern.h"

namespace tiny {

// An elementwise op in float32 or int32, rounded or wrapped to its dtype again.
UOp computed_wide(const Match& m);
// A Reduce that accumulates in float32 or int32.
UOp reduced_wide(const Match& m);
// A Cast by steps that targets have; also to bool of any type.
UOp cast_through_wide(const Match& m);
// Max and Min: of narrow floats a comparison and a choice, which keeps the bits of what it takes.
UOp extremum_of_narrow(const Match& m);
// Neg and Abs: of narrow floats on their bits, where there is a negative zero.
UOp sign_of_narrow(const Match& m);
// Where: of narrow floats on their bits; of narrow integers as it is.
UOp choice_of_narrow(const Match& m);

// What memory and values of a dtype are inside kernels: of a float8 the bits, so that no target is
// asked to know it.
DType dtype_in_kernel(DType dtype);
// Roots whose arithmetic is decomposed, with the bits in the place of floats of 8 bits.
std::vector<UOp> as_float8_bits(std::span<const UOp> roots);

}  // namespace tiny
