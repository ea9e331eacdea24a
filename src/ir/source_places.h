// Where the sources of all nodes of a walk stand in it: who looks at all of them hashes none.
//
// The walk is an order of topological(), with the same `stop`.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "ir/uop.h"

namespace tiny {

class SourcePlaces {
 public:
  explicit SourcePlaces(std::span<const UOp> order, bool (*stop)(const UOp&) = nullptr);

  // Of each node's sources, one node after the other; a node at which `stop` holds has none.
  const std::vector<uint32_t>& all() const { return all_; }
  std::vector<uint32_t> take() { return std::move(all_); }
  // Of a node of the walk, until the next walk.
  uint32_t place(const UOp& u) const { return static_cast<uint32_t>(u.node()->visit - first_); }

 private:
  uint64_t first_ = 0;  // the walk that marked the first node
  std::vector<uint32_t> all_;
};

}  // namespace tiny
