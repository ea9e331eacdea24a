// Which conditions `e >= 0` accesses, comparisons of indices and tasks ask for, before any of them
// is decided.
//
// reads: the kernel, which ranges are unrolled, lanes or loops, and what sizes alone prove.
#pragma once

#include <unordered_map>
#include <vector>

#include "codegen/linearize/loop_nest.h"
#include "codegen/linearize/prover.h"
#include "codegen/linearize/task.h"

namespace tiny {

// Integers made of ranges, variables and constants alone.
bool is_index(const UOp& node);
// A comparison of such.
bool compares_indices(const UOp& node);

class Conditions {
 public:
  Conditions(LoopNest& nest, Prover& prover) : nest_(nest), prover_(prover) {}

  // What is not negative where a comparison of indices holds.
  const UOp& slack(const UOp& comparison);
  // What must hold for a Load to be in range, or for an Index to be within what its group
  // shares; what the sizes alone prove is left out.
  const std::vector<UOp>& of_read(const UOp& node);
  // The conditions of reads, and of comparisons of indices, that `node` is computed from; but for
  // those of windows that a stage is filled with: its loops would hold all that is made of the
  // stage once for each edge of them.
  const std::vector<UOp>& below(const UOp& node);
  // Conditions without which what a task adds is zero: those of a factor of a sum that is a load,
  // or a choice of a value or zero.
  const std::vector<UOp>& void_outside(const Task& task);

  // The kernel's facts, as the instances of a task ask for them.
  struct TaskFacts {
    std::vector<UOp> known;   // of which an instance can be outside
    std::vector<UOp> guards;  // which it must ask for
  };
  const TaskFacts& facts_of(const Task& task);
  // Whether a fact must hold for a task to close an iteration: one of the splits that made its
  // ranges.
  bool guards(const UOp& fact, const Task& task);
  // The facts on the steps of a word.
  std::vector<UOp> word_facts(const Task& task);
  // What the tasks and the values below them ask for.
  std::vector<UOp> of_tasks(Tasks tasks);
  // Without which a step of a window adds nothing: those of factors, and of choices of a value or
  // what changes nothing.
  std::vector<UOp> of_window(const Task& task);

  // A reduction without loops of its own, with so many instances that a few branches among them
  // cost nothing.
  bool is_window(const UOp& node);
  // Whether a loop of known size has nothing but its steps inside, and many of them.
  bool is_long_window(Tasks tasks, size_t position) const;

 private:
  void add_range_conditions(const UOp& access, bool of_places, std::vector<UOp>& to);
  void add_range_condition(const UOp& index, const UOp& size, std::vector<UOp>& to);
  // What must hold where `value` is not a choice of `nothing`; the value that it is there.
  UOp add_choices(UOp value, uint64_t nothing, std::vector<UOp>& to);
  bool has_room(const UOp& fact, const Task& task);
  UOp in_whole_vectors(const UOp& fact, const Task& task);
  bool is_filled_from_memory(const Task& task, RangeSet own);
  bool has_place_for_each(const UOp& stage);

  LoopNest& nest_;
  Prover& prover_;
  std::unordered_map<const Node*, UOp> slacks_;  // of a comparison of indices
  std::unordered_map<const Node*, std::vector<UOp>> of_reads_;
  std::unordered_map<const Node*, std::vector<UOp>> below_;
  std::unordered_map<const Node*, std::vector<UOp>> void_outside_;
  std::unordered_map<const Node*, TaskFacts> task_facts_;
};

}  // namespace tiny
