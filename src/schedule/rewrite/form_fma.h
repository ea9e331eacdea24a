// A sum one of whose terms is a product becomes one rounding, an Fma, on the tensor graph: before
// it is cut into kernels, so that a value is the same number wherever it is computed again.
//
//   Add(Mul(a, b), c)  becomes  Fma(a, b, c)
//
// What decides is the sum, its product and what the factors are made of, and that the product has
// no memory, given or asked for: never who else reads it.  A product that is read elsewhere is
// rounded there.  It is left where both factors are work that nobody should do again (an activation
// x * f(x) of a convolution), and where the other term is negated: a difference is a Sub.
#pragma once

#include <span>

#include "schedule/rewrite/changed_graph.h"

namespace tiny {

ChangedGraph form_fma(std::span<const UOp> roots);

}  // namespace tiny
