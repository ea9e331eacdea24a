// OpenCL C 1.2 from linear programs, of groups of threads and of single ones.
//
// One translation unit with a kernel for each program, with the arguments of render/c/groups.h.
//
// The text gives the bits that docs/semantics.md states on devices that keep denormals.  For one
// that does not round divisions and square roots of float32 correctly it is compiled with
// DIVIDE_IN_FLOAT64.  float16 and bfloat16 are storage.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/code.h"
#include "ir/linear.h"

namespace tiny {

std::string render_opencl_unit(std::span<const LinearProgram> programs);

// A code for each program, all of one unit; their names differ.
std::vector<Code> render_opencl(std::span<const LinearProgram> programs);

}  // namespace tiny
