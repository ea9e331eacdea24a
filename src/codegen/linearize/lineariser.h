// Opens the loops of a kernel in the order that its tasks need, and closes the tasks in them.
//
// Its components, each of which reads those above it and none below:
//
//   LoopNest       which loops are open, and the coordinates of ranges
//   IndexForms     index expressions under them
//   Prover         what follows from sizes and known facts
//   Conditions     what accesses and tasks ask for
//   Emitter        ops, blocks, and what is remembered in them
//   Values         instances of nodes
//   Predicates     conditions as bools
//   Addresses      index expressions as operands of accesses
//   LanesApart     lanes without a stride
//   Accesses       loads and stores
//   RunningValues  values along a loop
//   KernelLeaves   of values: by the four before it
//   Words          the steps that one instruction takes
//   Matrices       products of matrices that a warp forms together
//   OuterSum       a sum that adds into the destination
//   Closers        instances of tasks
//   LoopLimits     bounds of loops
//   Peeling        iterations that are written apart
//   TileCuts       loops over balanced tiles
#pragma once

#include <optional>
#include <vector>

#include "codegen/linearize/balance.h"
#include "codegen/linearize/closers.h"
#include "codegen/linearize/leaves.h"
#include "codegen/linearize/loop_limits.h"
#include "codegen/linearize/peeling.h"
#include "codegen/linearize/tiles.h"

namespace tiny {

// What is known of the loops that are open.
struct NestState {
  explicit NestState(const Kernel& kernel)
      : nest(kernel), forms(nest), prover(nest, forms), conditions(nest, prover) {}
  LoopNest nest;
  IndexForms forms;
  Prover prover;
  Conditions conditions;
};

// What makes values under it, and their leaves.
struct ValueMakers {
  ValueMakers(NestState& at, LinearProgram& program, const Target& target, bool are_final);
  Emitter emit;
  KernelLeaves leaves;
  Values values;
  Predicates predicates;
  Addresses addresses;
  LanesApart apart;
  Accesses accesses;
  RunningValues running;
};

class Lineariser {
 public:
  Lineariser(const BalancedKernel& balanced, const Target& target);
  LinearProgram run();

 private:
  using Group = std::vector<Task*>;
  void begin_program();
  void close_tasks(const Group& tasks);
  std::vector<Task> discover(const Group& tasks);
  bool is_finished(const UOp& u);
  Task started(const UOp& u);
  void close_group(const Group& group, size_t range);
  // A range that numbers no tiles.
  void emit_range(const Group& group, size_t range, bool is_whole);
  void emit_split(const Group& group, size_t range, LoopBounds limits, const Split& split);
  void emit_peeled(const Group& group, size_t range, const LoopBounds& limits, const Peel& peel,
                   int64_t end);
  void emit_loop(const Group& group, size_t range, const LoopBounds& limits);
  bool is_coordinate(size_t range) const;
  void emit_coordinate(const Group& group, size_t range);
  LinearId digit_of_launch(LinearId number, size_t range);
  void emit_last_iteration(const Group& group, size_t range, int64_t value, LinearId end);
  void emit_iteration(const Group& group, size_t range, int64_t value);
  void emit_balanced(const Group& group, size_t range);
  void emit_tiles(const Group& group, size_t range, const LoopBounds& numbers,
                  const LoopBounds& elements, const Tiles& tiles);
  void close_inside(const Group& group, size_t range);
  void prefetch(size_t range);
  std::optional<int64_t> known_end(size_t range, LinearId end) const;

  const BalancedKernel& balanced_;
  LinearProgram program_;
  NestState at_;
  ValueMakers make_;
  Words words_;
  Matrices matrices_;
  OuterSum outer_;
  Closers closers_;
  LoopLimits limits_;
  Peeling peeling_;
  TileCuts cuts_;
  LinearId launched_ = 0;  // where several ranges are launched as one: that one's value
};

}  // namespace tiny
