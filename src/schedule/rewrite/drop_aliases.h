// Aliases that gradients alone see.
#pragma once

#include <span>

#include "schedule/rewrite/changed_graph.h"

namespace tiny {

// Whether nothing is computed otherwise, or later, for this node.
bool is_alias_for_gradients(const UOp& node);

// The values themselves where those aliases are.
ChangedGraph drop_aliases(std::span<const UOp> roots);

}  // namespace tiny
