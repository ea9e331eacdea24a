// Bytecode (base/bytecode.h) from a linear program: the interpreter's code, always available.
#pragma once

#include "ir/linear.h"
#include "render/rendered.h"

namespace tiny {

// The program as bytecode.  Its scratch is the program's and, behind it, the frame.  The program is
// one that verify() accepts, with no arithmetic on float16 and bfloat16: else Error{Internal}.
Rendered render_bytecode(const LinearProgram& program);

}  // namespace tiny
