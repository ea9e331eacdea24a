// Sums of products of shifted bytes, as quantised models have them, become sums of products of
// bytes that the target multiplies in words (ir/dot.h), and corrections:
//
//   sum (a + s)(b + t) = sum ab + s sum b + t sum a + n s t
//
// which wrapping integers make exact.  A constant operand whose sign is the wrong one for the
// target is shifted by 128 first.  Shifts are the same for all steps of the sum.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "ir/target.h"
#include "ir/uop.h"
#include "schedule/rewrite/changed_graph.h"

namespace tiny {

// `roots` with every such sum rewritten; `varies`, by id: nodes that inputs reach.
ChangedGraph rewrite_zero_points(std::span<const UOp> roots, const Target& target,
                                 const std::vector<uint8_t>& varies);

// One such sum as it is rewritten; none if the target would not multiply it in words.
std::optional<UOp> sum_in_words(const UOp& reduce, const Target& target,
                                const std::vector<uint8_t>& varies);

}  // namespace tiny
