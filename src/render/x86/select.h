// Instruction selection: a linear program as machine instructions over virtual registers.
#pragma once

#include "ir/dot.h"
#include "render/x86/machine.h"

namespace tiny::x86 {

// The machine program of `program`; throws Error{Unsupported} that names the op.  `tiles`: products
// of words for which there is a matrix unit.
MachineProgram select(const LinearProgram& program, bool avx512, DotSet tiles);

}  // namespace tiny::x86
