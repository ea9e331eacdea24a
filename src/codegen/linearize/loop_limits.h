// Where a loop begins and ends, and what holds inside because of that: a condition on this loop and
// loops outside of it is its bound, where nothing counts beyond.
//
// reads: the conditions of tasks, and what of them is proven; emits the bounds.
#pragma once

#include <vector>

#include "codegen/linearize/conditions.h"
#include "codegen/linearize/running.h"
#include "codegen/linearize/values.h"

namespace tiny {

struct LoopBounds {
  LinearId begin = 0;
  LinearId end = 0;
  std::vector<UOp> facts;  // what holds inside because of the bounds
};

class LoopLimits {
 public:
  LoopLimits(Emitter& emit, LoopNest& nest, IndexForms& forms, Prover& prover,
             Conditions& conditions, Values& values, RunningValues& running)
      : emit_(emit),
        nest_(nest),
        forms_(forms),
        prover_(prover),
        conditions_(conditions),
        values_(values),
        running_(running) {}

  // Of the loop over a range that all of these tasks share; of one that is launched alone, what is
  // launched of it.
  LoopBounds bounds_of(Tasks tasks, size_t position);
  // Of a range that is the first element of tiles (balance.h), whichever tiles are launched.
  LoopBounds elements_of(Tasks tasks, size_t position);
  // The numbers from which and to which a range is launched.
  LoopBounds launched();

 private:
  LoopBounds whole(size_t position);
  void apply_conditions(Tasks tasks, size_t position, LoopBounds& limits);
  void tighten(const UOp& condition, size_t position, LoopBounds& limits);
  void leave_out(const UOp& condition, const UOp& range, LoopBounds& limits);

  Emitter& emit_;
  LoopNest& nest_;
  IndexForms& forms_;
  Prover& prover_;
  Conditions& conditions_;
  Values& values_;
  RunningValues& running_;
};

}  // namespace tiny
