// Sums over a mask that marks one position become reads at that position.
#pragma once

#include <span>

#include "schedule/rewrite/changed_graph.h"

namespace tiny {

// `roots` with every  sum over k of (k == index) * w[.., k, ..]  below it, whatever movement stands
// between, replaced by a Gather of w at the index, and 0 where the index is outside: the work no
// longer grows with the length of the axis.  The terms that the mask makes 0 are not computed: an
// inf or NaN among them, of which the product would be NaN, does not count.  Returns them as they
// are if there is none.
ChangedGraph onehot_to_gather(std::span<const UOp> roots);

}  // namespace tiny
