// A graph with some of its nodes made anew, and what they were made from.
#pragma once

#include <unordered_map>
#include <vector>

#include "ir/uop.h"

namespace tiny {

struct ChangedGraph {
  std::vector<UOp> roots;
  // What nodes of the new graph were made from, where that is another node.
  std::unordered_map<const Node*, UOp> origins;

  const UOp& origin_of(const UOp& node) const {
    const auto at = origins.find(node.node());
    return at == origins.end() ? node : at->second;
  }
};

}  // namespace tiny
