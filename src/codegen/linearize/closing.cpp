// Closing tasks whose loops are open: accumulators, the instances of the unrolled ranges and what
// guards them, and what is left to do when the loops are done.
#include <algorithm>
#include <bit>
#include <ranges>

#include "base/checked.h"
#include "base/error.h"
#include "codegen/linearize/lineariser.h"
#include "ir/build.h"
#include "ir/fold.h"

namespace tiny {

namespace {

constexpr size_t kJumpedMin = 5;  // instances, for which a branch costs less than masks

}  // namespace

// What must hold for a task to close an iteration: the facts of the splits that made its ranges.
bool Lineariser::guards(const UOp& fact, const Task& task) {
  const RangeSet free = free_of(fact);
  if (free & dots_) return false;  // the steps of a word are guarded one by one
  return (free & task.own) && !(free & ~(task.own | free_of(task.node)));
}

// The kernel's facts, as the instances of a task ask for them.
const Lineariser::TaskFacts& Lineariser::facts_of(const Task& task) {
  const auto [at, is_new] = task_facts_.try_emplace(task.node.node());
  if (!is_new) return at->second;
  for (const UOp& fact : kernel_.facts) {
    if (!(free_of(fact) & ~free_of(task.node) & ~task.own)) at->second.known.push_back(fact);
    if (guards(fact, task) && !has_room(fact, task)) at->second.guards.push_back(fact);
  }
  // What is out of range is not stored.
  if (task.node.op() == Op::Store) add_range_conditions(task.node, true, at->second.guards);
  return at->second;
}

// The same of facts on the steps of a word.
std::vector<UOp> Lineariser::word_facts(const Task& task) {
  std::vector<UOp> facts;
  for (const UOp& fact : kernel_.facts) {
    const RangeSet free = free_of(fact);
    if ((free & task.own & dots_) && !(free & ~(task.own | free_of(task.node))))
      facts.push_back(fact);
  }
  return facts;
}

// The unrolled ranges that a task has instances for: its own first, since they are reduced.
RangeSet Lineariser::value_ranges(const Task& task) {
  RangeSet set = task.own;
  for (const UOp& s : task.node.src()) set |= free_of(s);
  return set & unrolled_ & ~fixed_;
}

// Calls body(instance) for every coordinate of the ranges, the last of them fastest; those beyond a
// tile's last step are left out.
void Lineariser::for_each_instance(RangeSet ranges, const std::function<void(size_t)>& body) {
  std::vector<size_t> positions;
  size_t count = 1;
  for (RangeSet set = ranges; set; set &= set - 1) {
    positions.push_back(static_cast<size_t>(std::countr_zero(set)));
    count *= static_cast<size_t>(kernel_.ranges[positions.back()].range.src(0).const_int());
  }
  for (size_t instance = 0; instance < count; ++instance) {
    size_t rest = instance;
    bool is_beyond = false;
    for (size_t i = positions.size(); i-- > 0;) {
      const RangeState& state = states_[positions[i]];
      const auto n = static_cast<size_t>(kernel_.ranges[positions[i]].range.src(0).const_int());
      fix(positions[i], static_cast<int64_t>(rest % n));
      is_beyond = is_beyond || (state.limit && state.value >= state.limit);
      rest /= n;
    }
    if (!is_beyond) body(instance);
  }
  for (size_t p : positions) release(p);
}

// One accumulator for every coordinate of the result, and of reduced ranges that are upcast.
void Lineariser::declare_accumulators(Task& task) {
  if (task.node.op() == Op::Stage) {
    int64_t size = 1;
    for (size_t i = 1; i < task.node.src().size(); ++i) {
      const int64_t last = bounds_.of(task.node.src(i).src(0)).hi - 1;
      size += last * task.node.ints()[i - 1];
    }
    const int64_t offset = program_.scratch_bytes;
    program_.scratch_bytes += round_up(std::max<int64_t>(size, 1) * task.node.dtype().bytes(), 64);
    task.accumulators.push_back(tree_.add(0, Op::Scratch, kAddress, {}, offset));
    return;
  }
  if (task.node.op() != Op::Reduce) return;
  // Lanes that the value does not depend on count too: it is added once for each.
  const RangeSet lanes = (free_of(task.node) | task.own) & vec_;
  const DType dtype = task.node.dtype().with_lanes(lanes_in(lanes));
  const LinearId first =
      constant(dtype, identity_bits(task.node.reduce_arg().op, task.node.dtype()));
  RangeSet grouped = 0;
  for (size_t i = 0; i < states_.size(); ++i)
    if (kernel_.ranges[i].kind == RangeKind::Upcast) grouped |= bit(i);
  for_each_instance(value_ranges(task) & (free_of(task.node) | grouped), [&](size_t instance) {
    task.accumulators.resize(instance + 1);
    task.accumulators[instance] = tree_.add(tree_.depth(), Op::Accumulator, dtype, {first});
  });
}

// Whether a factor of a product lies in padding in all lanes here, so that a sum can do without it
// (docs/semantics.md).
bool Lineariser::multiplies_padding(const UOp& term) {
  if (term.op() != Op::Mul) return false;
  std::vector<UOp> factors{term};
  while (!factors.empty()) {
    const UOp u = std::move(factors.back());
    factors.pop_back();
    if (u.op() == Op::Mul || u.op() == Op::Cast)
      factors.insert(factors.end(), u.src().rbegin(), u.src().rend());
    else if (u.op() == Op::Load && !conditions_below(u).empty() &&
             tree_.op(value_of(u)).op == Op::Const)
      return true;
  }
  return false;
}

void Lineariser::accumulate(Task& task, size_t instance, const Guards& guards) {
  const LinearId acc = task.accumulators[instance];
  if (task.own & dots_) return accumulate_words(task, acc, guards);
  const DType dtype = tree_.op(acc).dtype;
  const Op op = task.node.reduce_arg().op;
  if (op == Op::Add && multiplies_padding(task.node.src(0))) return;
  LinearId value = widened(value_of(task.node.src(0)), dtype.lanes);
  if (guards.mask) {
    const LinearId chosen[] = {*guards.mask, value,
                               constant(dtype, identity_bits(op, dtype.element()))};
    value = elementwise_op(Op::Where, dtype.element(), chosen);
  }
  const size_t here = tree_.depth();
  const LinearId sum = tree_.add(here, op, dtype, {acc, value});
  tree_.add(here, Op::Set, kVoid, {acc, sum});
}

// Closes one instance of a task in the present block: its guards decide whether, and for which
// lanes.
// Stores `beside` it have the same guards: the values of all are made before any is stored, since
// one may be stored where another's operands are.
void Lineariser::close_instance(Task& task, size_t instance, Step step,
                                std::span<Task* const> beside) {
  const int64_t lanes = lanes_in((free_of(task.node) | task.own));
  const TaskFacts& of_task = facts_of(task);
  for (const UOp& fact : of_task.known)
    if (impossible(fact)) return;
  const std::vector<UOp>& facts = of_task.guards;
  std::vector<Condition> conditions;
  for (const UOp& fact : facts) conditions.push_back(condition(fact, lanes));
  const Guards guards = guards_of(conditions, lanes);
  if (guards.never) return;
  const size_t known_before = known_.size();
  if (guards.scalar) {
    tree_.open(Op::If, kVoid, {*guards.scalar});
    for (size_t i = 0; i < facts.size(); ++i)
      if (conditions[i].kind == Condition::Scalar) know(facts[i]);
  }
  for (const Task* t : beside) {
    relied_on_ = 0;
    value_of(t->node.src(1));
  }
  perform(task, instance, guards, step);
  for (Task* t : beside)
    if (t != &task) perform(*t, instance, guards, step);
  known_.resize(known_before);
  if (guards.scalar) tree_.close();
}

void Lineariser::perform(Task& task, size_t instance, const Guards& guards, Step step) {
  const UOp& node = task.node;
  const int64_t lanes = lanes_in((free_of(task.node) | task.own));
  relied_on_ = 0;
  if (node.op() == Op::Reduce) {
    accumulate(task, instance, guards);
  } else if (node.op() == Op::Stage) {
    UOp& flat = flat_[node.node()];
    if (!flat) {
      flat = node.graph().integer(0);
      for (size_t i = 1; i < node.src().size(); ++i)
        flat = add(flat, mul(node.src(i), node.ints()[i - 1]));
    }
    if (task.own & dots_) return fill_words(task, flat, guards, lanes);
    store(node, task.accumulators.front(), flat, value_of(node.src(0)), guards.mask, lanes);
  } else if (node.op() == Op::Check) {
    check(node, guards.mask, lanes);
  } else if (step == Step::AddDestination) {
    const LinearId sum = part_of_sum();
    const LinearId before = load_destination(node, guards.mask, lanes);
    const LinearId next =
        tree_.add(tree_.depth(), outer_.reduce_arg().op, tree_.op(sum).dtype, {before, sum});
    tree_.add(tree_.depth(), Op::Set, kVoid, {sum, next});
  } else {
    const LinearId value = step == Step::StorePart ? part_of_sum() : value_of(node.src(1));
    store(node, value_of(node.src(0)), flat_index(node, 2), value, guards.mask, lanes);
  }
}

// Which lane failed is asked where one did.
void Lineariser::check(const UOp& node, std::optional<LinearId> mask, int64_t lanes) {
  LinearId ok = value_of(node.src(0));
  const auto both = [this](Op op, LinearId a, LinearId b) {
    const LinearId operands[] = {a, b};
    return elementwise_op(op, kBool, operands);
  };
  if (lanes == 1) {
    const LinearId position = scalar_of(form_of(node.src(1)));
    tree_.add(tree_.depth(), Op::Check, kVoid, {ok, position}, node.int_arg());
    return;
  }
  const LinearId yes = constant(kBool, 1);
  ok = widened(ok, lanes);
  if (mask) ok = both(Op::Or, ok, both(Op::Xor, *mask, yes));
  const auto fold = [this](Op op, LinearId value) {
    return tree_.add(tree_.depth(), Op::Fold, tree_.op(value).dtype.element(), {value}, 0,
                     static_cast<int32_t>(op));
  };
  tree_.open(Op::If, kVoid, {both(Op::Xor, fold(Op::And, ok), yes)});
  const LinearId choice[] = {ok, index_constant(INT64_MAX), lanes_of_index(node.src(1), lanes)};
  const LinearId first = fold(Op::Min, elementwise_op(Op::Where, kInt64, choice));
  tree_.add(tree_.depth(), Op::Check, kVoid, {constant(kBool, 0), first}, node.int_arg());
  tree_.close();
}

// Tasks whose loops are open; stores over the same ranges go together.
void Lineariser::instantiate_all(const std::vector<Task*>& tasks) {
  std::vector<Task*> beside;
  for (Task* t : tasks)
    if (!outer_ && t->node.op() == Op::Store && (beside.empty() || t->own == beside.front()->own))
      beside.push_back(t);
  if (beside.size() < 2) beside.clear();
  for (Task* t : tasks) {
    if (std::ranges::find(beside, t) == beside.end())
      instantiate(*t);
    else if (t == beside.front())
      for_each_instance(value_ranges(*t), [&](size_t instance) {
        close_instance(*t, instance, Step::Close, beside);
      });
  }
}

void Lineariser::instantiate(Task& task) {
  RangeSet grouped = 0;
  for (size_t i = 0; i < states_.size(); ++i)
    if (kernel_.ranges[i].kind == RangeKind::Upcast) grouped |= bit(i);
  const RangeSet all = value_ranges(task);
  if (outer_ && task.node.op() == Op::Store) return add_into_destination(task);
  if (task.node.op() == Op::Running) return step_running(task);
  if (task.node.op() == Op::Last) return;
  if (task.node.op() != Op::Reduce) {
    for_each_instance(all, [&](size_t instance) { close_instance(task, instance); });
    return;
  }
  // Steps that share accumulators come outermost.
  const RangeSet own_accumulator = all & (free_of(task.node) | grouped);
  const auto each = [&](const std::function<void(size_t)>& body) {
    for_each_instance(all & ~own_accumulator,
                      [&](size_t) { for_each_instance(own_accumulator, body); });
  };
  if (is_window(task.node)) return sum_window(task, each);
  each([&](size_t instance) { close_instance(task, instance); });
}

// Without which a step adds nothing: those of factors, and of choices of a value or what changes
// nothing.
std::vector<UOp> Lineariser::conditions_of_window(const Task& task) {
  std::vector<UOp> all = void_outside(task);
  const uint64_t nothing = identity_bits(task.node.reduce_arg().op, task.node.dtype());
  UOp value = task.node.src(0);
  for (; value.op() == Op::Where; value = value.src(1)) {
    if (!value.src(2).is_const() || value.src(2).const_bits() != nothing) break;
    std::vector<UOp> work{value.src(0)};
    while (!work.empty()) {
      const UOp condition = work.back();
      work.pop_back();
      if (condition.op() == Op::And) work.insert(work.end(), {condition.src(0), condition.src(1)});
      if (compares_indices(condition)) all.push_back(room_of(condition));
    }
  }
  return all;
}

// The instances of a window that the same edge leaves out stand together and are jumped over: a
// branch for all of them costs less than a mask for each, and nothing beyond the edge is touched.
void Lineariser::sum_window(Task& task, const EachInstance& each) {
  struct Edge {  // a condition that is open, with its coordinates put in
    UOp condition;
    int64_t constant;
    bool operator==(const Edge&) const = default;
  };
  struct Side {
    std::vector<Edge> edges;
    size_t count = 0;
  };
  const std::vector<UOp> conditions = conditions_of_window(task);
  std::vector<Side> sides(1);  // the first is inside of all edges
  std::vector<size_t> side_of;
  each([&](size_t) {
    std::vector<Edge> edges;
    for (const UOp& e : conditions) {
      if (proven(e) || impossible(e)) continue;
      const IndexForm& form = form_of(e);
      if (form.lane == 0 && !form.vector_atom) edges.push_back({e, form.constant});
    }
    const auto same = std::ranges::find(sides, edges, &Side::edges);
    side_of.push_back(static_cast<size_t>(same - sides.begin()));
    if (same == sides.end()) sides.push_back({std::move(edges)});
    ++sides[side_of.back()].count;
  });
  // A few go with those that some of their edges leave out, under masks for the others.
  std::vector<size_t> stands_with(sides.size());
  for (size_t s = 1; s < sides.size(); ++s) {
    const auto has = [&](const Side& side, const Edge& edge) {
      return std::ranges::find(side.edges, edge) != side.edges.end();
    };
    const auto takes = [&](const Side& side) {
      return side.count >= kJumpedMin &&
             std::ranges::all_of(side.edges, [&](const Edge& edge) { return has(sides[s], edge); });
    };
    const auto host = std::ranges::find_if(sides | std::views::drop(1), takes);
    if (host != sides.end()) stands_with[s] = static_cast<size_t>(host - sides.begin());
  }
  for (size_t s = 0; s < sides.size(); ++s) {
    if (stands_with[s] != s) continue;
    const Side& side = sides[s];
    size_t next = 0;
    bool is_open = false;
    const size_t known_before = known_.size();
    each([&](size_t instance) {
      if (stands_with[side_of[next++]] != s) return;
      if (s > 0 && !is_open) {
        std::vector<Condition> open;
        for (const Edge& edge : side.edges) open.push_back(condition(edge.condition, 1));
        tree_.open(Op::If, kVoid, {*guards_of(open, 1).scalar});
        for (const Edge& edge : side.edges) know(edge.condition);
        is_open = true;
      }
      close_instance(task, instance);
    });
    known_.resize(known_before);
    if (is_open) tree_.close();
  }
}

// The loops are closed: grouped accumulators and lanes fold into the value.
void Lineariser::finish(Task& task) {
  const UOp& node = task.node;
  if (node.op() == Op::Last) return remember_state(node);
  if (node.op() == Op::Stage) {
    const LinearId base = tree_.add(tree_.depth(), Op::Address, kAddress,
                                    {task.accumulators.front(), index_constant(0)}, 1);
    tree_.remember(key_of(node), base);
    return;
  }
  if (node.op() != Op::Reduce) return;
  const Op op = node.reduce_arg().op;
  const bool fold_lanes =
      (task.own & vec_) != 0 && tree_.op(task.accumulators.front()).dtype.lanes > 1;
  RangeSet grouped = 0;
  for (size_t i = 0; i < states_.size(); ++i)
    if (kernel_.ranges[i].kind == RangeKind::Upcast && (task.own & bit(i))) grouped |= bit(i);
  const RangeSet result = value_ranges(task) & free_of(node);
  const size_t here = tree_.depth();
  // Accumulators were declared with the grouped ranges among the others: collect by result.
  std::vector<std::pair<InstanceKey, LinearId>> sums;
  for_each_instance(result | (value_ranges(task) & grouped), [&](size_t instance) {
    const InstanceKey key = key_of(node);
    const LinearId acc = task.accumulators[instance];
    const auto found =
        std::find_if(sums.begin(), sums.end(), [&](const auto& s) { return s.first == key; });
    if (found == sums.end())
      sums.emplace_back(key, acc);
    else
      found->second = tree_.add(here, op, tree_.op(acc).dtype, {found->second, acc});
  });
  for (auto& [key, value] : sums) {
    if (fold_lanes)
      value = tree_.add(here, Op::Fold, node.dtype(), {value}, 0, static_cast<int32_t>(op));
    tree_.remember(key, value);
  }
}

}  // namespace tiny
