// The simplifier of index expressions: what the lowering calls for every index, bound and
// condition.
//
// Expressions are of int64 indices (assumed not to overflow) and of conditions on them.  Equal sums
// meet by interning: terms stand in the order of ir/affine.h with the constant last, comparisons
// have their positive terms left.  Nodes that are not elementwise (ranges, loads) are leaves and
// stay as they are.
#pragma once

#include <span>
#include <vector>

#include "ir/rewrite.h"

namespace tiny {

// Remembers what it has simplified; for many expressions of one graph.  Dies before the graph.
class IndexSimplifier {
 public:
  // `facts` are expressions known to be >= 0.
  explicit IndexSimplifier(std::span<const UOp> facts = {}, RewriteStats* stats = nullptr,
                           const Trace* trace = nullptr);

  UOp operator()(const UOp& u) { return rewriter_(u); }
  BoundsCache& bounds() { return rewriter_.bounds(); }

 private:
  std::vector<Affine> facts_;
  Rewriter rewriter_;
};

// `u` simplified where every one of `facts` is >= 0.
UOp simplify_index(const UOp& u, std::span<const UOp> facts = {});

// Identities, integer rules and index rules.
const RuleSet& index_simplify_rules();

// Where an Index node reads its stage, in elements: dimensions that were split meet again.
UOp flat_stage_index(const UOp& index);
// The same before pieces have changed places.
UOp plain_stage_index(const UOp& index);

// Where an element of a stage is that would be at `flat`.  In a swizzled stage the pieces of 16
// bytes of a line of 128 have changed places: piece p of line l is at p xor l % 2^bits, so that
// pieces in a column of lines are in different banks of memory.
UOp swizzled(const UOp& flat, const UOp& stage);
inline constexpr int64_t kSwizzledPiece = 16;   // bytes
inline constexpr int64_t kSwizzledPieces = 8;   // of a line
inline constexpr int64_t kSwizzledBitsMax = 3;  // of the number of a piece in its line
inline constexpr int64_t kSwizzledLine = kSwizzledPiece * kSwizzledPieces;

}  // namespace tiny
