// A sum whose outer loops lie outside of its store's: each trip adds its part to what the
// destination holds (split_reduce.h).
//
// reads: values, and where the outer loops end.
#pragma once

#include <vector>

#include "codegen/linearize/values.h"

namespace tiny {

class OuterSum {
 public:
  // `outer`, `added`: of SplitReduction.
  OuterSum(Emitter& emit, LoopNest& nest, Values& values, const UOp& outer, const UOp& added);

  explicit operator bool() const { return static_cast<bool>(outer_); }
  const UOp& node() const { return outer_; }
  const UOp& added() const { return added_; }

  // An instance of the sum begins with this trip's part.
  void begin_part();
  // The register that holds it, to which is added what the destination holds.
  LinearId part() const;
  // Whether this is not the first trip of all outer loops, or their last, as bools.
  LinearId is_beyond_first();
  LinearId is_last();

 private:
  Emitter& emit_;
  LoopNest& nest_;
  Values& values_;
  const UOp& outer_;
  const UOp& added_;
  std::vector<UOp> made_of_sum_;  // `outer_` and what is made of it
};

}  // namespace tiny
