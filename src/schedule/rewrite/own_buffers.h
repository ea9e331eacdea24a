// The outputs of a program, each in a buffer of its own, row-major.
#pragma once

#include <cstddef>
#include <span>

#include "schedule/rewrite/changed_graph.h"

namespace tiny {

// The first `outputs` of the roots in such buffers, the others as they are.  What else reads an
// output reads that buffer, so that the value is not stored twice; what is a view of memory is read
// from there.
ChangedGraph in_own_buffers(std::span<const UOp> roots, size_t outputs);

// The first `outputs` of the roots are to be stored anew: what has memory already, or is stored for
// another of them, is copied.
ChangedGraph copy_what_is_stored(std::span<const UOp> roots, size_t outputs);

}  // namespace tiny
