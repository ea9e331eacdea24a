// What decides the code of a kernel, as bytes: the same in every process.
#pragma once

#include <string>

#include "ir/kernel.h"
#include "ir/target.h"

namespace tiny {

// The structure of a kernel: nodes in topological order, ranges, facts, parameters, variables.
std::string kernel_key(const Kernel& kernel);
// Everything that codegen may ask a target.
std::string target_key(const Target& target);

}  // namespace tiny
