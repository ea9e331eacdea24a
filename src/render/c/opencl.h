// OpenCL C 1.2 from linear programs, of groups of threads and of single ones.
//
// One translation unit with a kernel for each program.  A kernel's arguments: for each parameter
// slot a buffer and a byte offset (long), then a long for each variable, then `begin` and `end` (as
// Launch has them), then the queue's status
// (base/opencl_abi.h).  A piece of the THREAD range is a
// work-item of a kernel without groups, and those behind `end` do nothing; of a grouped program it
// is a work-group of Code::group items.
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
