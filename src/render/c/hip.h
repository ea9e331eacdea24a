// HIP from linear programs: AMD's GPUs, by the compiler of ROCm (hipcc, hipRTC) or clang.
//
// One translation unit with a `__global__` function for each program, with the arguments of
// render/c/groups.h; a grid of blocks of LinearProgram::group threads, or of any number where the
// program has no groups.  The text gives the bits that docs/semantics.md states without flags of
// the compiler, whose divisions and square roots are rounded correctly unless it is told otherwise.
#pragma once

#include <span>
#include <string>

#include "ir/linear.h"

namespace tiny {

std::string render_hip(std::span<const LinearProgram> programs);

}  // namespace tiny
