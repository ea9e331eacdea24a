// A graph with some of its nodes changed, and in another place.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "ir/uop.h"

namespace tiny {

// What takes a node's place, given what its sources became, which it may change.
using MakeNode = std::function<UOp(const UOp& node, std::vector<UOp>& src)>;

// What `roots` become where `make` says what each node below them becomes, sources first.  A node
// at which `stop` holds is asked for without its sources; null: no node is.
std::vector<UOp> map_nodes(std::span<const UOp> roots, bool (*stop)(const UOp&),
                           const MakeNode& make);

// `roots` after `change` has looked at every node below them, sources first.  It gets the node, and
// what that is over its changed sources, and says what takes its place.  A node at which `stop`
// holds keeps its sources.
std::vector<UOp> rebuild(std::span<const UOp> roots, bool (*stop)(const UOp&),
                         const std::function<UOp(const UOp& node, const UOp& now)>& change);

// `roots`, and what is below them, as nodes of another graph.
std::vector<UOp> copy_nodes(std::span<const UOp> roots, Graph& graph);

}  // namespace tiny
