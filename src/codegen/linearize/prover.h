// What follows from what is known: whether `e >= 0` holds, or cannot hold, for the coordinates that
// ranges have now, by their sizes and by the facts of the blocks that are open.
//
// reads: the nest of loops, and index expressions under it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "codegen/linearize/index_forms.h"
#include "codegen/linearize/loop_nest.h"
#include "ir/affine.h"
#include "ir/bounds.h"

namespace tiny {

class Prover {
 public:
  Prover(LoopNest& nest, IndexForms& forms) : nest_(nest), forms_(forms) {}

  // fact >= 0 in the block at `depth` and within, until it is forgotten.
  void know(const UOp& fact, size_t depth) { known_.push_back({fact, depth, ++facts_}); }
  size_t known() const { return known_.size(); }
  // All but the first so many.
  void forget_beyond(size_t count) { known_.resize(count); }

  // The depth of the block that the proof of e >= 0 relies on; none if there is no proof.
  std::optional<size_t> proven(const UOp& e);
  // Whether e < 0 for all values of its ranges.
  bool impossible(const UOp& e);
  // Whether a condition that is no fact of the kernel holds wherever its facts do.
  bool follows_from_kernel(const UOp& e);
  // Whether e >= 0 by the sizes of ranges alone, for all coordinates.
  bool holds_by_sizes(const UOp& e) { return prove_nonnegative(e, {}, bounds_); }

  // What is not negative where `e` is not; lanes of it need no division.
  UOp without_quotients(const UOp& e) { return tiny::without_quotients(e, bounds_); }

  Interval bounds_of(const UOp& e) { return bounds_.of(e); }
  Interval bounds_of(const Affine& sum) { return bounds_.of(sum); }

 private:
  struct Known {
    UOp fact;
    size_t depth;
    uint64_t number;  // no other fact has it
  };
  std::optional<size_t> prove_by_facts(const UOp& e);

  LoopNest& nest_;
  IndexForms& forms_;
  BoundsCache bounds_;
  // Under the innermost fact: the depth that one relies on, or -1.
  InstanceTable<int64_t> proofs_;
  std::vector<Known> known_;
  uint64_t facts_ = 0;  // that were known at some time
};

}  // namespace tiny
