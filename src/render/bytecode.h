// Bytecode (base/bytecode.h) from a linear program: the interpreter's code, always available.
#pragma once

#include "base/code.h"
#include "ir/linear.h"

namespace tiny {

// The program as bytecode.  Its scratch is the program's and, behind it, the frame.  The program is
// one that verify() accepts, with no arithmetic on float16 and bfloat16: else Error{Internal}.
Code render_bytecode(const LinearProgram& program);

}  // namespace tiny
