// Long reductions of few elements, cut into pieces that several cores can fold at once.
//
// Cores share the elements that a kernel stores.  Where there are too few of these,
//
//   Reduce(x)  becomes  Reduce over pieces of a value in memory that is  Reduce of each piece of x
//
// for every operation that reductions fold with.  How many pieces there are follows from the shapes
// and the target alone, so that results do not depend on who is free to run a program.
#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "ir/target.h"
#include "ir/uop.h"

namespace tiny {

struct SplitReductions {
  std::vector<UOp> roots;
  // What nodes of the new graph were made from, where that is another node.
  std::unordered_map<const Node*, UOp> origins;

  const UOp& origin_of(const UOp& node) const {
    const auto at = origins.find(node.node());
    return at == origins.end() ? node : at->second;
  }
};

// `roots` with every reduction cut that the target is expected to compute sooner in pieces.
SplitReductions split_reductions(std::span<const UOp> roots, const Target& target);

}  // namespace tiny
