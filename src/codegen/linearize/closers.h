// Closing tasks whose loops are open: accumulators, the instances of the unrolled ranges and what
// guards them, and what is left to do when the loops are done.
//
// reads: every component that makes values; opens no loops.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "codegen/linearize/accesses.h"
#include "codegen/linearize/group_matrix.h"
#include "codegen/linearize/outer_sum.h"
#include "codegen/linearize/running.h"
#include "codegen/linearize/task.h"
#include "codegen/linearize/window_edges.h"
#include "codegen/linearize/words.h"
#include "ir/node_map.h"

namespace tiny {

class Closers {
 public:
  Closers(Emitter& emit, LoopNest& nest, IndexForms& forms, Prover& prover, Conditions& conditions,
          Values& values, Predicates& predicates, Addresses& addresses, Accesses& accesses,
          RunningValues& running, Words& words, Matrices& matrices, OuterSum& outer,
          LinearProgram& program)
      : emit_(emit),
        nest_(nest),
        forms_(forms),
        prover_(prover),
        conditions_(conditions),
        values_(values),
        predicates_(predicates),
        addresses_(addresses),
        accesses_(accesses),
        running_(running),
        words_(words),
        matrices_(matrices),
        outer_(outer),
        program_(program) {}

  // Before the loops of a task: one accumulator for every coordinate of the result, and of reduced
  // ranges that are upcast; a Stage's scratch.
  void declare(Task& task);
  // Tasks whose loops are open; stores over the same ranges go together.
  void instantiate(Tasks tasks);
  // The loops are closed: grouped accumulators and lanes fold into the value.
  void finish(const Task& task);

 private:
  // What an instance does with its value: a Store's is final, or a part of a sum.
  enum class Step : uint8_t { Close, AddDestination, AddPart, StorePart };
  RangeSet instances_of(const Task& task) {
    return nest_.instances_of(task.node, task.own) & ~matrices_.elements_of(task.node);
  }
  void declare_stage(Task& task);
  LinearId begin_continued(const Task& task, const UOp& running);
  uint8_t axes_of(RangeSet ranges) const;
  std::optional<LinearId> is_first_thread(const Task& task);
  void instantiate(const Task& task);
  void add_into_destination(const Task& store);
  void sum_window(const Task& task, const EachInstance& each);
  void close_instance(const Task& task, size_t instance, Step step = Step::Close,
                      Tasks beside = {});
  void perform(const Task& task, size_t instance, const Guards& guards, Step step);
  void perform_store(const Task& task, const Guards& guards, Step step, int64_t lanes);
  void fill(const Task& task, const Guards& guards, int64_t lanes);
  void accumulate(const Task& task, size_t instance, const Guards& guards);
  bool multiplies_padding(const UOp& term);
  void check(const UOp& node, std::optional<LinearId> mask, int64_t lanes);
  using Sums = std::vector<std::pair<InstanceKey, LinearId>>;
  void finish_sum(const Task& task);
  void finish_matrices(const Task& task, const Sums& sums);

  Emitter& emit_;
  LoopNest& nest_;
  IndexForms& forms_;
  Prover& prover_;
  Conditions& conditions_;
  Values& values_;
  Predicates& predicates_;
  Addresses& addresses_;
  Accesses& accesses_;
  RunningValues& running_;
  Words& words_;
  Matrices& matrices_;
  OuterSum& outer_;
  LinearProgram& program_;
  NodeMap<int64_t> shared_at_;  // of stages: in the memory of the group
};

}  // namespace tiny
