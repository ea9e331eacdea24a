// A graph with some of its nodes made anew, and what they were made from.
#pragma once

#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

#include "ir/node_map.h"
#include "ir/uop.h"

namespace tiny {

class ChangedGraph {
 public:
  std::vector<UOp> roots;

  // What a node of the new graph that may get memory for the roots was made from, where that is
  // another node.
  const UOp& origin_of(const UOp& node) const {
    const auto at = origins_.find(node.node());
    return at == origins_.end() ? node : at->second;
  }
  void note(const UOp& made, const UOp& node);
  // This graph is what `next` was made from: the origins of `next` become nodes that this one was
  // made from.
  void become(ChangedGraph next);

 private:
  std::unordered_map<const Node*, UOp> origins_;
  std::vector<UOp> made_;  // the keys, alive: no other node has their address
};

ChangedGraph unchanged(std::span<const UOp> roots);

// The roots and what they are views of: what gets memory for them is among these.
NodeSet views_below(std::span<const UOp> roots);

// rebuild() (ir/rebuild.h) with the origins of what may get memory.  What `change` puts there has
// the elements of the node in the node's order; a view of something else is stored.
ChangedGraph rebuild_with_origins(
    std::span<const UOp> roots, bool (*stop)(const UOp&),
    const std::function<UOp(const UOp& node, const UOp& now)>& change);

}  // namespace tiny
