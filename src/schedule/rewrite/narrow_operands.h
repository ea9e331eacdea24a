// Factors of sums of products that stay narrow in memory and are widened where they are read:
// those that the target multiplies in words (ir/dot.h), and constants of products that read more
// than they compute.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cost/machine.h"
#include "ir/bounds.h"
#include "ir/dot.h"
#include "ir/uop.h"

namespace tiny {

// The kind of dot product of a ReduceAxis, of those that the target has.
std::optional<DotKind> dot_kind_of(const UOp& reduce, const Target& target);

// A factor of such a sum without its cast: the same movement of what is widened.
UOp without_cast(const UOp& factor);

// The values that an integer can have, from the types of the bytes that it is a sum of; none if it
// is made of anything else.
std::optional<Interval> values_of_bytes(const UOp& integer);

// A constant factor made of 8 or 16 bits each by a few operations whose other operands are small.
class NarrowFactor {
 public:
  // The narrow elements, movement of what memory holds, in the factor's shape.
  const UOp& elements() const { return elements_; }
  // What the factor is multiplied with last and that is the same for all steps of the sum, in the
  // factor's shape.
  const std::vector<UOp>& scales() const { return scales_; }
  // The nodes that widen the elements, the factor's own first.
  const std::vector<UOp>& widening() const { return widening_; }
  // The factor without its scales, of other elements, all movement below its operations.
  UOp over(const UOp& elements) const;

 private:
  friend class NarrowFactorFinder;
  struct Step {
    UOp node;
    size_t operand = 0;  // that leads to the elements
    size_t moves = 0;    // of moves_ that stand above it
  };
  UOp elements_;
  std::vector<UOp> scales_;
  std::vector<UOp> widening_;
  std::vector<UOp> moves_;
  std::vector<Step> steps_;
};

// The operand `side` of a sum of float products, if it stays narrow: if that is faster, by how
// often its elements are used, than reading what they are widened to.  `varies`, by id: nodes that
// inputs reach.
std::optional<NarrowFactor> narrow_factor(const UOp& reduce, size_t side, const Machine& target,
                                          const std::vector<uint8_t>& varies);

// The operand `side` of a sum that is multiplied in words, if it is bits of a constant's bytes,
// each element some of one byte's, and stays those bytes.
std::optional<NarrowFactor> bits_factor(const UOp& reduce, size_t side,
                                        const std::vector<uint8_t>& varies);
// Whether bytes are computed, as bits of those that memory holds.
bool are_bits_of_memory(const UOp& bytes);

// By id: the nodes that widen the factors of both kinds.
std::vector<uint8_t> widening_nodes(std::span<const UOp> roots, const Machine& target,
                                    const std::vector<uint8_t>& varies);

}  // namespace tiny
