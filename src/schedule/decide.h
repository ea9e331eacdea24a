// Which values of a tensor graph become buffers.
#pragma once

#include <span>
#include <vector>

#include "ir/target.h"
#include "ir/uop.h"

namespace tiny {

struct Decision {
  std::vector<UOp> order;       // every node reached, sources first
  std::vector<uint8_t> stored;  // by node id: has a buffer, now or after its kernel
  std::vector<UOp> slice_of;  // by node id: the concatenation whose slice this node is stored into
};

// What not storing and reading a buffer of this size saves, with its launch.
double saved_seconds(double bytes, const Target& target);

Decision decide_stored(std::span<const UOp> outputs, const Target& target);

}  // namespace tiny
