// The bodies of scans (ScanLoop, shape/shape.h) in a walk of the graph.
#pragma once

#include <span>
#include <vector>

#include "ir/uop.h"
#include "shape/shape.h"

namespace tiny {

// Which nodes are computed anew in each step of which scan: what ScanSteps reach, and ScanStores.
class ScanBodies {
 public:
  ScanBodies() = default;
  // `order`: sources before users.  Sees no scan in a scan: whoever builds graphs makes none.
  explicit ScanBodies(std::span<const UOp> order);

  bool empty() const { return loops_.empty(); }
  // Null outside of bodies.
  const ScanLoop* of(const UOp& node) const {
    return node.id() < loops_.size() ? loops_[node.id()] : nullptr;
  }

 private:
  std::vector<const ScanLoop*> loops_;  // by id; empty without scans
};

// Whether a node is one of those that make up a scan: it is always stored, row-major.
bool is_of_scan(const UOp& node);

// The same nodes, sources before users, with each body in one piece just before its scan; scans of
// as many steps that need nothing of each other follow each other where they can.
std::vector<UOp> bodies_together(std::vector<UOp> order);

}  // namespace tiny
