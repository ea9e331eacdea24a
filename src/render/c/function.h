// One function of a translation unit: the walk over a linear program, the names of its values.
#pragma once

#include <span>
#include <string>

#include "ir/linear.h"
#include "render/c/helpers.h"

namespace tiny::c {

// The programs as functions of the helpers' dialect, whose names differ; what they call is defined
// by the helpers.  `is_part`: of a unit whose other functions call them.
std::string functions_text(std::span<const LinearProgram> programs, Helpers& helpers, bool is_part);

}  // namespace tiny::c
