// What ends a list, however it began: stores past the caches, and the loop that cores share.
#pragma once

#include "codegen/choose/choose.h"
#include "codegen/options/options.h"
#include "ir/kernel.h"
#include "ir/target.h"

namespace tiny {

OptimisedKernel finish(OptimisedKernel made, const Target& target);

}  // namespace tiny
