// Graphs as pictures, for TINY_GRAPH and TINY_GRAPHUOPS.
#pragma once

#include <span>
#include <string>

#include "ir/uop.h"

namespace tiny {

// An SVG of the tensor graph below `outputs`, with dtypes and shapes; nothing below what has
// memory.
std::string draw_tensors(std::span<const UOp> outputs);

// An SVG of a kernel's nodes.
std::string draw_uops(std::span<const UOp> roots, const std::string& name);

}  // namespace tiny
