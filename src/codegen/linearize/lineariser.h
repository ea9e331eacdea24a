// The state of one linearisation; shared by linearize.cpp (loops and the order of tasks),
// closing.cpp (instances of tasks), peel.cpp (edges of loops), instance.cpp (values), access.cpp
// (loads, stores and their conditions) and what needs a file of its own.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "codegen/linearize/balance.h"
#include "codegen/linearize/block.h"
#include "ir/affine.h"
#include "ir/bounds.h"
#include "ir/kernel.h"
#include "ir/linear.h"
#include "ir/target.h"

namespace tiny {

inline constexpr int64_t kPeeledMax = 3;  // iterations that a loop is peeled by on either side

// Where a range stands at the moment.
struct RangeState {
  enum Kind : uint8_t { Closed, Open, Fixed, Lane } kind = Closed;
  LinearId loop = 0;   // Open: the loop's variable
  LinearId end = 0;    // Open, Fixed: where the loop ends
  int64_t value = 0;   // Fixed: its coordinate
  uint64_t digit = 0;  // Fixed: the same in an instance's coordinates
  int64_t limit = 0;   // how many of its steps the present tile has; 0: all
};

// Something to close: a Store, Check, Reduce or Stage, and the loops that it still needs.
struct Task {
  UOp node;
  RangeSet todo = 0;
  RangeSet own = 0;                    // the ranges it closes
  std::vector<LinearId> accumulators;  // Reduce: one per instance
  bool mutable_accumulators = false;
};

// An index expression under the present range states: constant + lane * l + scalar terms.
struct IndexTerm {
  UOp atom;
  int64_t coefficient = 0;
  size_t depth = 0;  // of the innermost loop that it changes in
};
struct IndexForm {
  int64_t constant = 0;
  int64_t lane = 0;              // the coefficient of the lane number
  std::vector<IndexTerm> terms;  // one-lane atoms, outer loops first
  UOp vector_atom;               // an atom with lanes that is no range (a gathered index), if any
  UOp inner;                     // the innermost term, if there is one
  UOp outer;                     // the sum of the others, if there are any
};

// An index expression, and what was made of it last: it is asked for at every instance, where only
// the coordinates differ.
struct IndexExpression {
  std::optional<Affine> sum;
  RangeSet free = 0;
  IndexForm form;  // for these fixed ranges, and this nest of loops; 0: not made yet
  RangeSet fixed = 0;
  uint64_t nest = 0;
  int64_t constant = 0;                            // of the form, without the fixed ranges
  std::vector<std::pair<size_t, int64_t>> digits;  // their positions and coefficients
};

// A condition `e >= 0`, as far as it could be decided.
struct Condition {
  enum Kind : uint8_t { True, False, Scalar, Lanes } kind = True;
  LinearId scalar = 0;  // Scalar: a bool
  LinearId mask = 0;    // Lanes: a bool with lanes
  size_t depth = 0;     // True by a known fact: nothing that relies on it may leave this block
};

class Lineariser {
 public:
  Lineariser(const BalancedKernel& balanced, const Target& target);
  LinearProgram run();

 private:
  struct Guards {  // several conditions, as one
    bool never = false;
    size_t depth = 0;
    std::optional<LinearId> scalar;
    std::optional<LinearId> mask;
  };

  // linearize.cpp
  void close_tasks(std::vector<Task*> tasks);
  std::vector<UOp> discover(const std::vector<Task*>& tasks);
  bool finished(const UOp& u);
  bool reaches(const UOp& user, const UOp& target);
  void close_group(const std::vector<Task*>& group, size_t range);
  void prefetch(size_t range);
  struct LoopBounds {
    LinearId begin = 0;
    LinearId end = 0;
    std::vector<UOp> facts;  // what holds inside because of the bounds
  };
  LoopBounds loop_bounds(const std::vector<Task*>& group, size_t range);
  void emit_loop(const std::vector<Task*>& group, size_t range, const LoopBounds& limits);
  void open_loop(size_t range, LinearId value);
  void close_inside(const std::vector<Task*>& group, size_t range);
  void emit_last_iteration(const std::vector<Task*>& group, size_t range, int64_t value,
                           LinearId end);
  void emit_iteration(const std::vector<Task*>& group, size_t range, int64_t value);

  // closing.cpp
  struct TaskFacts {
    std::vector<UOp> known;   // of which an instance can be outside
    std::vector<UOp> guards;  // which it must ask for
  };
  // What an instance does with its value: Store's value is final, or a part of a sum.
  enum class Step : uint8_t { Close, AddDestination, StorePart };
  // Calls a body for every instance of a task.
  using EachInstance = std::function<void(const std::function<void(size_t)>& body)>;
  bool guards(const UOp& fact, const Task& task);
  const TaskFacts& facts_of(const Task& task);
  std::vector<UOp> word_facts(const Task& task);
  RangeSet value_ranges(const Task& task);
  void for_each_instance(RangeSet ranges, const std::function<void(size_t)>& body);
  void declare_accumulators(Task& task);
  bool multiplies_padding(const UOp& term);
  void accumulate(Task& task, size_t instance, const Guards& guards);
  void close_instance(Task& task, size_t instance, Step step = Step::Close,
                      std::span<Task* const> beside = {});
  void perform(Task& task, size_t instance, const Guards& guards, Step step);
  void check(const UOp& node, std::optional<LinearId> mask, int64_t lanes);
  void instantiate_all(const std::vector<Task*>& tasks);
  void instantiate(Task& task);
  void sum_window(Task& task, const EachInstance& each);
  std::vector<UOp> conditions_of_window(const Task& task);
  void finish(Task& task);

  // destination.cpp
  void add_into_destination(Task& store);
  void begin_part();
  LinearId part_of_sum();
  LinearId any_outer_beyond_first();
  LinearId all_outer_last();

  // peel.cpp
  struct Peel {  // iterations [first, last) need no check of unrolled ranges or lanes
    int64_t first = 0;
    int64_t last = 0;
    std::vector<UOp> facts;
  };
  bool follows_from_facts(const UOp& e);
  bool shares_values(const std::vector<Task*>& group);
  std::optional<Peel> find_peel(const std::vector<Task*>& group, size_t range, LinearId end);
  int64_t end_of(size_t range, LinearId end) const;
  struct Split {  // the same of a range of run-time size: [0, last)
    UOp last;
    std::vector<UOp> facts;
  };
  std::optional<Split> find_split(const std::vector<Task*>& group, size_t range);
  void emit_balanced(const std::vector<Task*>& group, size_t range, LoopBounds limits);
  // Tiles of so many steps: which of them, and what is known inside.
  struct Tiles {
    int64_t steps = 0;
    int64_t apart = 0;  // elements from one to the next
    LinearId begin = 0;
    LinearId end = 0;
    LinearId first = 0;  // the element at which tile 0 would begin
    UOp fact;
  };
  std::vector<Tiles> balanced_tiles(size_t range);
  std::vector<Tiles> lane_tiles(size_t range);
  LinearId equals(LinearId value, int64_t number);
  LinearId choose(LinearId condition, LinearId a, LinearId b);
  void emit_tiles(const std::vector<Task*>& group, size_t range, const LoopBounds& limits,
                  const Tiles& tiles);
  std::vector<UOp> conditions_of(const std::vector<Task*>& group);
  RangeSet pending_in(RangeSet free) const;
  bool is_window(const UOp& node);
  const std::vector<UOp>& conditions_below(const UOp& node);
  const std::vector<UOp>& void_outside(const Task& task);
  void tighten(const UOp& condition, size_t range, LoopBounds& limits);
  bool has_room(const UOp& fact, const Task& task);

  // running.cpp
  struct RunningState {  // where a running value lies in scratch
    int64_t offset = 0;  // bytes
    int64_t size = 0;    // of one of its two copies, in elements
    UOp index;           // in a copy
  };
  size_t range_run_along(const UOp& node) const;
  RangeSet loops_outside(const UOp& last);
  const RunningState& state_of(const UOp& running);
  LinearId state_base(const UOp& running);
  UOp state_index(const UOp& running, const UOp& step);
  LinearId load_state(const UOp& running, LinearId base, const UOp& step);
  InstanceKey state_key(const UOp& node);
  void remember_state(const UOp& node);
  LinearId read_state(const UOp& node);
  UOp steps_of_run(const UOp& range) const;
  void bound_run(const std::vector<Task*>& group, size_t range, LoopBounds& limits);
  LinearId begin_running(const UOp& node);
  void fold_running(const UOp& node, LinearId base, LinearId part);
  void step_running(Task& task);

  // instance.cpp
  LinearId value_of(const UOp& node);
  LinearId scalar_index(const UOp& expression);
  struct Frame;
  bool leaf(const UOp& node, LinearId* out);
  bool enter(const UOp& node, LinearId* out);
  LinearId compute(const UOp& node, std::span<const LinearId> src);
  bool compares_indices(const UOp& node);
  const UOp& room_of(const UOp& comparison);
  bool is_decided(const UOp& node, std::span<const LinearId> src) const;
  LinearId elementwise_op(Op op, DType dtype, std::span<const LinearId> src);
  LinearId constant(DType dtype, uint64_t bits);
  LinearId index_constant(int64_t value) { return constant(kInt64, static_cast<uint64_t>(value)); }
  LinearId widened(LinearId id, int64_t lanes);
  LinearId cast_index(const UOp& node);
  LinearId lanes_of_index(const UOp& expression, int64_t lanes);
  uint64_t digit_of(size_t position, int64_t value) const;
  void fix(size_t position, int64_t value);
  void release(size_t position);
  InstanceKey key_of(const UOp& node);
  bool is_index(const UOp& node);  // integers made of ranges, variables and constants alone

  // words.cpp
  void accumulate_words(Task& task, LinearId acc, const Guards& guards);
  void fill_words(Task& task, const UOp& flat, const Guards& guards, int64_t lanes);
  LinearId word_of(const UOp& value, std::span<const UOp> facts);
  std::optional<LinearId> load_word(const UOp& value, std::span<const UOp> facts);
  LinearId join_steps(const UOp& value, size_t range, std::span<const UOp> facts);
  std::optional<size_t> dot_range_of(const UOp& value);

  // access.cpp
  IndexExpression& expression_of(const UOp& expression);
  const IndexForm& form_of(const UOp& expression);
  void make_form(const UOp& expression, IndexExpression& of);
  Condition condition(const UOp& nonnegative, int64_t lanes);
  LinearId holds_of(const UOp& nonnegative, const IndexForm& form, int64_t lanes);
  std::optional<size_t> proven(const UOp& nonnegative);
  std::optional<size_t> prove_by_facts(const UOp& nonnegative);
  LinearId bool_of(const Condition& c, int64_t lanes);
  LinearId load(const UOp& node);
  void add_range_conditions(const UOp& access, bool of_places, std::vector<UOp>& to);
  bool is_read_in_step(const UOp& load) const;
  LinearId read_stage(const UOp& node);
  void store(const UOp& node, LinearId base, const UOp& flat, LinearId value,
             std::optional<LinearId> mask, int64_t lanes);
  LinearId load_destination(const UOp& node, std::optional<LinearId> mask, int64_t lanes);
  LinearId masked_load(const UOp& node, const Guards& guards, int64_t lanes);
  LinearId chosen_load(const UOp& node, const Guards& guards);
  struct Place {
    LinearId address;
    LinearId index;
    int64_t displacement = 0;  // bytes
    int32_t lane_stride = 0;   // elements; 0: the index has lanes
  };
  Place place(LinearId base, const UOp& flat, int64_t element_bytes);

  // apart.cpp
  std::span<const UOp> places_apart(const UOp& flat);
  LinearId passing_scratch(int64_t bytes, int64_t after);
  LinearId spread_mask(LinearId mask, int64_t lanes, int64_t after);
  void for_each_lane(const LinearId* mask, int64_t lanes, const std::function<void(int64_t)>& body);
  void store_apart(LinearId base, std::span<const UOp> places, LinearId value,
                   std::optional<LinearId> mask);
  LinearId load_apart(LinearId base, std::span<const UOp> places, DType element,
                      std::optional<LinearId> mask);
  std::span<const UOp> places_of_wide(const UOp& flat, int64_t lanes);

  std::optional<Place> word_place(LinearId base, const UOp& flat, size_t range, int64_t bytes);
  UOp flat_index(const UOp& access, size_t first_index);
  UOp sum_expression(std::span<const IndexTerm> terms);
  LinearId scalar_of(const IndexForm& form);  // without its lanes
  std::optional<Affine> fixed(const UOp& e);
  std::optional<int64_t> value_where_fixed(const UOp& atom);
  bool impossible(const UOp& e);
  Guards guards_of(std::span<const Condition> conditions, int64_t lanes);

  RangeSet free_of(const UOp& node);
  void know(const UOp& fact) { known_.push_back({fact, tree_.depth(), ++facts_}); }
  int64_t lanes_in(RangeSet set) const;
  size_t depth_of(LinearId id) const { return tree_.depth_of(id); }

  const Kernel& kernel_;
  const UOp outer_;  // the Reduce that adds into the destination (split_reduce.h), or no node
  std::vector<UOp> made_of_sum_;  // `outer_` and what the store makes of it
  const std::vector<std::optional<BalancedTile>>& tiles_;
  const Target& target_;
  LinearProgram program_;
  BlockTree tree_;
  FreeRanges free_;
  struct Digit {
    size_t word = 0;
    uint64_t radix = 1;
  };
  std::vector<Digit> digits_;                   // of an instance's coordinates, by position
  std::unordered_map<const Node*, UOp> flat_;   // the flat index of an access
  std::unordered_map<const Node*, UOp> rooms_;  // of a comparison of indices
  NodeTable<IndexExpression*> expression_at_;
  std::deque<IndexExpression> expressions_;
  InstanceTable<int64_t> proofs_;   // under the innermost fact: the depth that one relies on, or -1
  std::vector<UOp> kept_;           // what the maps point to stays alive
  std::vector<RangeState> states_;  // by position
  RangeSet loops_ = 0;              // positions by kind
  RangeSet unrolled_ = 0;
  RangeSet vec_ = 0;
  RangeSet dots_ = 0;
  RangeSet open_ = 0;   // loops that are open, or fixed by peeling
  RangeSet fixed_ = 0;  // what has a coordinate
  uint64_t nest_ = 1;   // counts the nests of loops
  struct Known {
    UOp fact;  // >= 0 in the block at this depth and within
    size_t depth;
    uint64_t number;  // no other fact has it
  };
  std::vector<Known> known_;
  uint64_t facts_ = 0;    // that were known at some time
  size_t relied_on_ = 0;  // the depth of the facts that the values made since it was set hold by
  BoundsCache bounds_;
  std::unordered_map<const Node*, std::vector<UOp>> conditions_;
  std::unordered_map<const Node*, std::vector<UOp>> void_outside_;
  std::unordered_map<const Node*, TaskFacts> task_facts_;
  std::unordered_map<const Node*, RunningState> running_;
  std::unordered_map<const Node*, std::vector<UOp>> apart_;  // by flat index: of each lane
  int64_t passing_end_ = 0;                                  // of scratch that vectors pass through
  std::unordered_map<const Node*, UOp> run_ends_;            // of ranges whose loops end before
  std::unordered_map<const Node*, int> users_;               // how often a node is a source
};

}  // namespace tiny
