// Metal's shading language from linear programs: Apple's GPUs.
//
// One unit with a kernel for each program.  Its buffers are those of the parameters, then one with
// the numbers of render/c/groups.h (long: the byte offset of each buffer, the variables, begin and
// end), then the status; threads of a threadgroup are LinearProgram::group.  There are no 64-bit
// floats: Error{Unsupported} for a program that has them, or more buffers than a kernel may have.
// The text gives the bits that docs/semantics.md states but for denormal float32, which such GPUs
// may take for zero; a compiler older than Metal 3.2 must be told -fno-fast-math and
// -ffp-contract=off.
#pragma once

#include <span>
#include <string>

#include "ir/linear.h"

namespace tiny {

std::string render_metal(std::span<const LinearProgram> programs);

}  // namespace tiny
