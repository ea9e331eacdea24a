// What ends a list, however it began: stores past the caches, and the loop that cores share.
#pragma once

#include "codegen/choose/choose.h"
#include "codegen/options/options.h"
#include "cost/machine.h"
#include "ir/kernel.h"

namespace tiny {

OptimisedKernel finish(OptimisedKernel made, const Machine& target);

}  // namespace tiny
