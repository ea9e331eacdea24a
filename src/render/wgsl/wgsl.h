// WGSL from linear programs: what browsers and other hosts of WebGPU run.
//
// WGSL has no pointers into memory that is typed otherwise, no vectors of any length and neither
// 64-bit integers nor 64-bit floats.  So addresses are byte offsets (u32) into arrays of words, one
// for each buffer, a vector is a value for each lane, and an int64 is an i32 where it is known to
// fit (render/index_width.h).  Error{Unsupported} for a program with another one, with uint64 or
// float64.
//
// One module with one entry.  Bindings of group 0: the buffers of the parameters, in their order;
// `numbers` (i32: the byte offset of each buffer, the variables, begin and end), and the status.
// The grid has as many groups as there are numbers from begin to end or more, along x and y: a
// group for each, or, where the program has no groups, one for kThreads of them.
//
// WGSL promises neither NaN and infinities nor the last bits of a quotient or a square root, and
// products may be fused with sums: that the text has what docs/semantics.md says is up to the
// device.  Comparisons look at bits for NaN, which they would say anything of.
#pragma once

#include <string>

#include "ir/linear.h"

namespace tiny {

// Whether this build has the renderer; what follows is Error{Unsupported} otherwise.
bool has_wgsl_renderer();

std::string render_wgsl(const LinearProgram& program);

}  // namespace tiny
