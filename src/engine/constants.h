// The init tape: what a program has of constants is computed once, before its first run.
#pragma once

#include <vector>

#include "engine/context.h"
#include "engine/program_record.h"
#include "ir/uop.h"

namespace tiny {

// Gives the values, which no input reaches, memory.  What depends on one constant alone is kept
// with that constant, so that other programs find it.  `recorder` is told of it.
void compute_constants(Context& context, const std::vector<UOp>& values, ProgramRecorder& recorder);

}  // namespace tiny
