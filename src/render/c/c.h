// C from linear programs: for reading, for other processors, and for ahead-of-time export.
//
// The text is C11 that includes standard headers alone (for x86-64 also the compiler's of its
// instructions) and may call functions of libm.  Vectors are gcc's extensions, which clang has too;
// for another compiler, or with TINY_SCALAR defined, structs of lanes.  It gives the bits that
// docs/semantics.md states, at any level of optimisation.
#pragma once

#include <span>
#include <string>

#include "base/code.h"
#include "ir/linear.h"

namespace tiny {

// Whether this build has the renderer; what follows is Error{Unsupported} otherwise.
bool has_c_renderer();

// One translation unit with one function: `void NAME(const struct KernelArgs *args)`, the arguments
// as in base/kernel_abi.h.  The program is one that verify() accepts, with no arithmetic on float16
// and bfloat16: else Error{Internal}.
Code render_c(const LinearProgram& program);

// One translation unit with a function for each program; their names differ.
std::string render_c_unit(std::span<const LinearProgram> programs);

// The same in two parts, for a unit that has more: what comes before the functions, and these.
// `is_part`: they are static, and nobody ends them early.
struct CUnit {
  std::string beginning;
  std::string functions;
};
CUnit render_c_parts(std::span<const LinearProgram> programs, bool is_part);

}  // namespace tiny
