// Values that run along a loop (Running, Before, Last).  They lie in scratch, for every coordinate
// of the ranges inside that loop, twice: a step reads what the one before it left and writes the
// other copy.  So a step may be computed again without harm, wherever loops are opened anew.
//
// In registers are those of a thread of a group, and those of which every step is stored, where all
// that a value depends on inside of the loop is unrolled: no step of them is computed twice, since
// such loops are neither cut nor peeled.
//
// reads: the nest of loops, bounds of sizes, values and accesses.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "codegen/linearize/accesses.h"
#include "codegen/linearize/task.h"

namespace tiny {

class RunningValues {
 public:
  RunningValues(Emitter& emit, LoopNest& nest, IndexForms& forms, Prover& prover, Values& values,
                Addresses& addresses, Accesses& accesses, LinearProgram& program)
      : emit_(emit),
        nest_(nest),
        forms_(forms),
        prover_(prover),
        values_(values),
        addresses_(addresses),
        accesses_(accesses),
        program_(program) {}

  // The loops that are open where what a Last node needs can be begun: those outside of its range.
  RangeSet loops_outside(const UOp& last);
  // Whether it is known where a Running lies, or what a Last read lies, and making it known.
  bool has_state(const UOp& node) { return emit_.find(state_key(node)) != nullptr; }
  void remember_state(const UOp& node);

  // What a Before or Last node reads.
  LinearId read(const UOp& node);
  // Of a thread's sum that a running value adds to: the sum goes on from what that is so far, in
  // the same registers, rather than from nothing.  No node where it does not.
  UOp continued_by(const UOp& sum, RangeSet own);
  // Where it goes on from, for the instance of the coordinates that are fixed now.
  LinearId begin_continued(const UOp& running);

  // One step of a running value: the first is what it folds, later ones add what was before.
  void step(const Task& task);

  // Whether values run along a loop in registers: it is walked whole, once.
  bool is_walked_whole(size_t position);

  // Where the loop over a range may end, no node if not before its size: where no task needs
  // another step, for whatever coordinates the loops and lanes inside have.  The first step is
  // always taken.
  UOp end_of_run(Tasks tasks, size_t position);
  bool may_end_before(size_t position) const;

 private:
  struct State {         // where a running value lies in scratch
    int64_t offset = 0;  // bytes
    int64_t size = 0;    // of one of its two copies, in elements
    UOp index;           // in a copy
  };
  size_t range_along(const UOp& node) const;
  const State& state_of(const UOp& running);
  LinearId state_base(const UOp& running);
  UOp state_index(const UOp& running, const UOp& step);
  LinearId load_state(const UOp& running, LinearId base, const UOp& step);
  InstanceKey state_key(const UOp& node);
  UOp steps_of(const UOp& range) const;
  bool in_registers(const UOp& node);
  void require_registers(const UOp& running);
  LinearId new_register(const UOp& running, DType dtype);
  LinearId scaled(const UOp& running, LinearId before);
  LinearId read_register(const UOp& node);
  void step_in_registers(const Task& task);
  bool is_only_user(const UOp& running);
  void count_users();
  LinearId begin(const UOp& node);
  void fold(const UOp& node, LinearId base, LinearId part);

  Emitter& emit_;
  LoopNest& nest_;
  IndexForms& forms_;
  Prover& prover_;
  Values& values_;
  Addresses& addresses_;
  Accesses& accesses_;
  LinearProgram& program_;
  std::unordered_map<const Node*, State> states_;
  std::unordered_map<const Node*, UOp> ends_;       // of ranges whose loops end before
  std::unordered_map<const Node*, int> users_;      // how often a node is a source
  std::unordered_map<const Node*, UOp> continued_;  // Running nodes by what they fold
};

}  // namespace tiny
