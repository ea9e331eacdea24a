// A graph with some of its nodes changed, and in another place.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "ir/uop.h"

namespace tiny {

// `roots` after `change` has looked at every node below them, sources first.  It gets the node, and
// what that is over its changed sources, and says what takes its place.  A node at which `stop`
// holds keeps its sources.
std::vector<UOp> rebuild(std::span<const UOp> roots, bool (*stop)(const UOp&),
                         const std::function<UOp(const UOp& node, const UOp& now)>& change);

// `roots`, and what is below them, as nodes of another graph.
std::vector<UOp> copy_nodes(std::span<const UOp> roots, Graph& graph);

}  // namespace tiny
