// C from linear programs: for reading, for other processors, and for ahead-of-time export.
//
// The text includes no header and needs only gcc's vector extensions, which clang has too. Compiled
// with -ffp-contract=off -fno-math-errno -fwrapv -fno-strict-aliasing it gives the bits that
// docs/semantics.md states, at any level of optimisation; it may call functions of libm.
#pragma once

#include <span>
#include <string>

#include "ir/linear.h"
#include "render/rendered.h"

namespace tiny {

// One translation unit with one function: `void NAME(const struct KernelArgs *args)`, the arguments
// as in base/kernel_abi.h.  The program is one that verify() accepts, with no arithmetic on float16
// and bfloat16: else Error{Internal}.
Rendered render_c(const LinearProgram& program);

// One translation unit with a function for each program; their names differ.
std::string render_c_unit(std::span<const LinearProgram> programs);

}  // namespace tiny
