// The init tape: what a program has of constants is computed once, before its first run.
#pragma once

#include <vector>

#include "engine/compile.h"
#include "engine/context.h"
#include "engine/program_record.h"
#include "ir/uop.h"

namespace tiny {

// Realises what no input of `roots` reaches, transforms the filters of convolutions that are
// computed in tiles (schedule/rewrite/winograd.h), and lays constants out as contractions read them
// (schedule/rewrite/pack_constants.h): `roots` read the result.  What depends on one constant alone
// is kept with that constant, so that other programs find it.  `recorder` is told of it.
void compute_constants(Context& context, std::vector<UOp>& roots, const Captured& captured,
                       ProgramRecorder& recorder);

}  // namespace tiny
