// Factors of sums of products that the target multiplies in words (ir/dot.h): they stay narrow in
// memory, and are widened where they are read.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "ir/dot.h"
#include "ir/target.h"
#include "ir/uop.h"

namespace tiny {

// The kind of dot product of a ReduceAxis, of those that the target has.
std::optional<DotKind> dot_kind_of(const UOp& reduce, const Target& target);

// A factor of such a sum without its cast: the same movement of what is widened.
UOp without_cast(const UOp& factor);

// By id: the casts below such sums.
std::vector<uint8_t> casts_of_factors(std::span<const UOp> roots, const Target& target);

}  // namespace tiny
