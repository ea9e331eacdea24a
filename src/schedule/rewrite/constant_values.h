// Which values of a graph are the same in every run, and which of these are worth memory.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "cost/machine.h"
#include "ir/uop.h"

namespace tiny {

// Whether a node with memory holds what never changes.
using IsFixed = std::function<bool(const UOp&)>;

// By id, of nodes in order: whether an input, or memory that may be written to, reaches them.
std::vector<uint8_t> varying(std::span<const UOp> order, const IsFixed& is_fixed);

// What each node of an order is a view of, by id.
std::vector<const UOp*> bases_of(std::span<const UOp> order);

// By id: the nodes with memory that no run binds, and what is to be stored of them alone.
std::vector<uint8_t> constant_nodes(std::span<const UOp> roots, const IsFixed& is_fixed);

// Values that no input reaches but that a value that inputs reach is made from.
std::vector<UOp> constant_frontier(std::span<const UOp> roots, const IsFixed& is_fixed,
                                   const Machine& target);

}  // namespace tiny
