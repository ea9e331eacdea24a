// One function of a translation unit: the walk over a linear program, the names of its values.
#pragma once

#include <string>

#include "ir/linear.h"
#include "render/c/helpers.h"

namespace tiny::c {

// The program as a function of the helpers' dialect; what it calls is defined by them.  `is_part`:
// of a unit whose other functions call it.
std::string function_text(const LinearProgram& program, Helpers& helpers, bool is_part);

}  // namespace tiny::c
