// A graph with some of its nodes made anew, and what they were made from.
#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "ir/node_map.h"
#include "ir/uop.h"

namespace tiny {

struct ChangedGraph {
  std::vector<UOp> roots;
  // What nodes of the new graph that may get memory for the roots were made from, where that is
  // another node.
  std::unordered_map<const Node*, UOp> origins;

  const UOp& origin_of(const UOp& node) const {
    const auto at = origins.find(node.node());
    return at == origins.end() ? node : at->second;
  }
};

// The roots and what they are views of: what gets memory for them is among these.
inline NodeSet views_below(std::span<const UOp> roots) {
  NodeSet found;
  for (const UOp& root : roots)
    for (const UOp* node = &root; found.insert(node->node()) && has(node->op(), kMovement);)
      node = &node->src(0);
  return found;
}

}  // namespace tiny
