// The bodies of scans (ScanLoop, shape/shape.h) in a walk of the graph.
#pragma once

#include <span>
#include <vector>

#include "ir/uop.h"
#include "shape/shape.h"

namespace tiny {

// Which nodes are computed anew in each step of which scan: what ScanSteps and induction variables
// reach, and ScanStores; of a branch, what its stores alone need.  Scans whose steps the run counts
// may have others in their bodies; deeper than that, and the other way round, there are none:
// whoever builds graphs makes none.
class ScanBodies {
 public:
  ScanBodies() = default;
  // `order`: what the roots need, sources before users.
  ScanBodies(std::span<const UOp> order, std::span<const UOp> roots);

  bool empty() const { return steps_.empty(); }
  // The innermost; null outside of bodies.
  const ScanLoop* of(const UOp& node) const {
    const ScanLoop* steps = at(steps_, node);
    return steps ? steps : segment(node);
  }
  // Of those whose steps the run counts.
  const ScanLoop* segment(const UOp& node) const { return at(segments_, node); }
  // Of the others.
  const ScanLoop* steps(const UOp& node) const { return at(steps_, node); }

 private:
  using Loops = std::vector<const ScanLoop*>;  // by id; empty without scans

  static const ScanLoop* at(const Loops& loops, const UOp& node) {
    return node.id() < loops.size() ? loops[node.id()] : nullptr;
  }
  void find_rounds(std::span<const UOp> order);
  void find_steps(std::span<const UOp> order);
  void find_branches(std::span<const UOp> order, std::span<const UOp> roots);
  void keep_together(std::span<const UOp> order);

  Loops steps_;
  Loops segments_;
};

// Whether a node is one of those that make up a scan: it is always stored, row-major.
bool is_of_scan(const UOp& node);

// The same nodes, sources before users, with each body in one piece just before its scan; scans of
// as many steps that need nothing of each other follow each other where they can.
std::vector<UOp> bodies_together(std::vector<UOp> order, std::span<const UOp> roots);

}  // namespace tiny
