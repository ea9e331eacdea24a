// Who reads each node of a walk.
//
// The walk's order gives nodes numbers, so that what passes keep of them is as large as the walk,
// not as the graph, of which it may be a small part.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/uop.h"

namespace tiny {

class Users {
 public:
  // `order`: nodes, sources first; it must outlive this.  Nodes with memory read nothing.
  explicit Users(const std::vector<UOp>& order);

  // The number of a node of the walk: its place in the order.
  size_t number(const UOp& node) const { return numbers_[node.id()]; }
  // The nodes that read it, in order; one that reads it twice is there twice.
  std::span<const UOp* const> of(const UOp& node) const {
    const size_t n = number(node);
    return std::span(users_).subspan(begin_[n], begin_[n + 1] - begin_[n]);
  }

 private:
  std::vector<uint32_t> numbers_;  // by id; anything for those that are not there
  std::vector<uint32_t> begin_;    // by number: where its users begin
  std::vector<const UOp*> users_;
};

}  // namespace tiny
