// What a kernel is, in numbers and as a name: for people and for the rates that are shown to them.
#pragma once

#include <string>

#include "ir/kernel.h"
#include "ir/linear.h"

namespace tiny {

// Arithmetic of one launch, symbolic sizes at their largest: each operation on values once for
// every combination of the ranges that it depends on and that nothing below it closes; a reduction
// once for every value that it folds.  Index arithmetic, casts and choices of constants do not
// count.
double count_operations(const Kernel& kernel);

// Bytes of the buffers that one launch reads and writes, each once; symbolic sizes at their least.
double count_bytes(const Kernel& kernel);

// The same two by the kernel's variables.
UOp operations_of(const Kernel& kernel);
UOp bytes_of(const Kernel& kernel);

// Ops that one launch executes, roughly: those of a loop once a trip, a load or store of lanes that
// lie apart once a lane.  `threads_extent`: trips of the loop that threads share.
double count_executed(const LinearProgram& program, int64_t threads_extent);

// "r_128_32_4": r with a reduction and E without, and the sizes of the ranges, outer to inner; n
// for one that is not constant.  What a Stage is filled over is left out.
std::string shape_name(const Kernel& kernel);

}  // namespace tiny
