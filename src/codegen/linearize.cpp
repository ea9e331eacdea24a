#include "codegen/linearize.h"

#include <algorithm>
#include <bit>

#include "base/checked.h"
#include "base/error.h"
#include "codegen/lineariser.h"
#include "codegen/split_reduce.h"
#include "ir/build.h"
#include "ir/fold.h"

namespace tiny {

Lineariser::Lineariser(const BalancedKernel& balanced, const Target& target)
    : kernel_(balanced.kernel),
      outer_(balanced.outer),
      tiles_(balanced.tiles),
      target_(target),
      tree_(program_),
      states_(kernel_.ranges.size()) {
  const Kernel& kernel = kernel_;
  invariant(kernel.ranges.size() <= 64, "a kernel has at most 64 ranges");
  invariant(!kernel.roots.empty(), "a kernel has a root");
  if (outer_) {
    const auto is_sum = [](const UOp& u) { return u.op() == Op::Reduce; };
    for (const UOp& u : topological(kernel.roots, is_sum))
      if (u.op() != Op::Store && tiny::reaches(u, outer_)) made_of_sum_.push_back(u);
  }
  // An instance's coordinates are numbers with a digit a range: 0 while it is not fixed.
  Digit next;
  for (const KernelRange& r : kernel.ranges) {
    const bool unrolled =
        r.kind == RangeKind::Upcast || r.kind == RangeKind::Unroll || r.kind == RangeKind::Dot;
    const int64_t digits = unrolled ? r.range.src(0).const_int() : 2 * kPeeledMax;
    uint64_t above = 0;
    if (__builtin_mul_overflow(next.radix, static_cast<uint64_t>(digits) + 1, &above)) {
      next = {next.word + 1, 1};
      above = static_cast<uint64_t>(digits) + 1;
    }
    require(next.word < 2, Status::Limit, "a kernel has too many instances of its values");
    digits_.push_back(next);
    next.radix = above;
  }
  for (const UOp& u : topological(kernel.roots))
    for (const UOp& s : u.src()) ++users_[s.node()];
  for (size_t i = 0; i < kernel.ranges.size(); ++i) {
    switch (kernel.ranges[i].kind) {
      case RangeKind::Loop:
      case RangeKind::Thread:
        loops_ |= bit(i);
        break;
      case RangeKind::Upcast:
      case RangeKind::Unroll:
        unrolled_ |= bit(i);
        break;
      case RangeKind::Dot:
        dots_ |= bit(i);
        break;
      case RangeKind::Vec:
        vec_ |= bit(i);
        states_[i].kind = RangeState::Lane;
        break;
    }
  }
}

LinearProgram Lineariser::run() {
  program_.name = kernel_.name;
  for (const KernelParam& p : kernel_.params)
    program_.params.push_back({p.element, p.read || (p.written && outer_), p.written});
  for (const UOp& v : kernel_.variables) {
    const VariableArg& arg = v.variable_arg();
    program_.variables.push_back({arg.name, arg.min, arg.max});
  }
  for (size_t i = 0; i < kernel_.params.size(); ++i) {
    Graph& graph = kernel_.roots.front().graph();
    const UOp param = graph.make(Op::Param, {}, static_cast<int64_t>(i), kernel_.params[i].element);
    kept_.push_back(param);
    tree_.remember({param.node(), {}, 0},
                   tree_.add(0, Op::Param, kAddress, {}, static_cast<int64_t>(i)));
  }
  std::vector<Task> tasks;
  for (const UOp& root : kernel_.roots) {
    const RangeSet own = free_of(root);
    RangeSet all = own;
    if (outer_)
      for (size_t i = 1; i < outer_.src().size(); ++i) all |= bit(kernel_.position(outer_.src(i)));
    tasks.push_back({root, all & loops_, all, {}, false});
  }
  std::vector<Task*> pointers;
  for (Task& t : tasks) pointers.push_back(&t);
  close_tasks(pointers);
  tree_.flatten();
  return std::move(program_);
}

// The reductions and stages below `tasks` that can be closed here: all their outer loops are open.
// Sources come before users.
std::vector<UOp> Lineariser::discover(const std::vector<Task*>& tasks) {
  std::vector<UOp> roots;
  for (const Task* t : tasks)
    for (const UOp& s : t->node.src()) roots.push_back(s);
  std::vector<UOp> found;
  for (const UOp& u : topological(roots)) {
    if ((!closes_ranges(u) && u.op() != Op::Running) || u == outer_) continue;
    const RangeSet outside = u.op() == Op::Last ? loops_outside(u) : free_of(u) & loops_;
    if ((outside & ~open_) != 0) continue;
    const bool busy =
        std::any_of(tasks.begin(), tasks.end(), [&](const Task* t) { return t->node == u; });
    if (!busy && !finished(u)) found.push_back(u);
  }
  return found;
}

// Whether a reduction or stage has its value here: all instances have, or none.
bool Lineariser::finished(const UOp& u) {
  if (u.op() == Op::Last) return tree_.find(state_key(u)) != nullptr;
  std::vector<size_t> fixed;
  for (RangeSet set = free_of(u) & unrolled_; set; set &= set - 1) {
    const auto i = static_cast<size_t>(std::countr_zero(set));
    if (states_[i].kind == RangeState::Fixed) continue;
    states_[i].kind = RangeState::Fixed;
    states_[i].value = 0;
    fixed.push_back(i);
  }
  const bool known = tree_.find(key_of(u)) != nullptr;
  for (size_t i : fixed) states_[i].kind = RangeState::Closed;
  return known;
}

bool Lineariser::reaches(const UOp& user, const UOp& target) {
  const std::vector<UOp> below = topological({user.src().data(), user.src().size()});
  return std::find(below.begin(), below.end(), target) != below.end();
}

void Lineariser::close_tasks(std::vector<Task*> tasks) {
  std::vector<Task> started;
  for (const UOp& u : discover(tasks)) {
    RangeSet own = 0;
    for (size_t i = 1; closes_ranges(u) && i < u.src().size(); ++i)
      own |= bit(kernel_.position(u.src(i)));
    // What runs along a loop is folded for all coordinates inside of it.
    const RangeSet inside = u.op() == Op::Last ? free_of(u) & ~open_ : 0;
    started.push_back({u, (own | inside) & loops_, own, {}, false});
  }
  std::vector<Task*> waiting;
  for (Task& t : started) waiting.push_back(&t);
  const auto is_started = [&](const Task* t) {
    return !started.empty() && t >= started.data() && t < started.data() + started.size();
  };
  waiting.insert(waiting.end(), tasks.begin(), tasks.end());
  while (!waiting.empty()) {
    // What waits for nothing can go; those that begin with the same loop share it.
    std::vector<Task*> ready;
    for (Task* t : waiting)
      if (std::none_of(waiting.begin(), waiting.end(), [&](const Task* other) {
            return other != t && is_started(other) && reaches(t->node, other->node);
          }))
        ready.push_back(t);
    invariant(!ready.empty(), "tasks do not wait for each other");
    const RangeSet first = ready.front()->todo;
    std::vector<Task*> group;
    for (Task* t : ready)
      if (first ? (t->todo && std::countr_zero(t->todo) == std::countr_zero(first)) : t->todo == 0)
        group.push_back(t);
    for (Task* t : group)
      if (is_started(t)) declare_accumulators(*t);
    if (first) {
      close_group(group, static_cast<size_t>(std::countr_zero(first)));
    } else {
      instantiate_all(group);
    }
    for (Task* t : group) {
      if (is_started(t)) finish(*t);
      waiting.erase(std::find(waiting.begin(), waiting.end(), t));
    }
  }
}

// What must hold for a task to close an iteration: the facts of the splits that made its ranges.
bool Lineariser::guards(const UOp& fact, const Task& task) {
  const RangeSet free = free_of(fact);
  if (free & dots_) return false;  // the steps of a word are guarded one by one
  return (free & task.own) && !(free & ~(task.own | free_of(task.node)));
}

std::vector<UOp> Lineariser::guards_of_task(const Task& task) {
  std::vector<UOp> facts;
  for (const UOp& fact : kernel_.facts)
    if (guards(fact, task)) facts.push_back(fact);
  return facts;
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

// A guard on this loop and loops outside of it becomes the loop's bound.
Lineariser::LoopBounds Lineariser::loop_bounds(const std::vector<Task*>& group, size_t range) {
  LoopBounds out;
  const UOp& r = kernel_.ranges[range].range;
  out.begin = index_constant(0);
  out.end = states_[range].limit ? index_constant(states_[range].limit) : scalar_index(r.src(0));
  if (kernel_.ranges[range].kind == RangeKind::Thread) {
    out.begin = tree_.add(0, Op::LaunchArg, kInt64, {}, 0);
    out.end = tree_.add(0, Op::LaunchArg, kInt64, {}, 1);
    program_.threaded = true;
  }
  if (!r.src(0).is_const()) out.facts.push_back(add(sub(r.src(0), r), -1));
  for (const UOp& fact : kernel_.facts)
    if (std::all_of(group.begin(), group.end(), [&](const Task* t) { return guards(fact, *t); }))
      tighten(fact, range, out);
  for (const UOp& condition : void_outside(*group.front()))
    if (!pending_in(free_of(condition)) &&
        std::all_of(group.begin(), group.end(), [&](const Task* t) {
          const std::vector<UOp> same = void_outside(*t);
          return std::find(same.begin(), same.end(), condition) != same.end();
        }))
      tighten(condition, range, out);
  bound_run(group, range, out);
  return out;
}

// Closes what the tasks of a loop have left to close inside of it.
void Lineariser::close_inside(const std::vector<Task*>& group, size_t range) {
  prefetch(range);
  std::vector<Task> copies;
  for (const Task* t : group) copies.push_back(*t);
  std::vector<Task*> inside;
  for (Task& t : copies) {
    t.todo &= ~bit(range);
    inside.push_back(&t);
  }
  close_tasks(inside);
}

void Lineariser::emit_loop(const std::vector<Task*>& group, size_t range,
                           const LoopBounds& limits) {
  RangeState& state = states_[range];
  const LinearOp& begin = tree_.op(limits.begin);
  const LinearOp& end = tree_.op(limits.end);
  if (begin.op == Op::Const && end.op == Op::Const && begin.imm >= end.imm) return;
  state.kind = RangeState::Open;
  state.loop = tree_.open(Op::Loop, kInt64, {limits.begin, limits.end}, 1);
  if (kernel_.ranges[range].overlaps) tree_.set_mark(state.loop);
  open_ |= bit(range);
  for (const UOp& fact : limits.facts) known_.push_back({fact, tree_.depth()});
  close_inside(group, range);
  known_.resize(known_.size() - limits.facts.size());
  open_ &= ~bit(range);
  state.kind = RangeState::Closed;
  tree_.close();
}

// One iteration of a loop with its range as a constant: conditions fold, instances die.
void Lineariser::emit_iteration(const std::vector<Task*>& group, size_t range, int64_t value) {
  RangeState& state = states_[range];
  const bool threaded = kernel_.ranges[range].kind == RangeKind::Thread;
  if (threaded) {
    const LinearId at = index_constant(value);
    const LinearId from[] = {tree_.add(0, Op::LaunchArg, kInt64, {}, 0), at};
    const LinearId to[] = {at, tree_.add(0, Op::LaunchArg, kInt64, {}, 1)};
    const LinearId both[] = {elementwise_op(Op::LessEqual, kBool, from),
                             elementwise_op(Op::Less, kBool, to)};
    tree_.open(Op::If, kVoid, {elementwise_op(Op::And, kBool, both)});
  }
  state.kind = RangeState::Fixed;
  state.value = value;
  open_ |= bit(range);
  close_inside(group, range);
  open_ &= ~bit(range);
  state.kind = RangeState::Closed;
  if (threaded) tree_.close();
}

// The same of one that the loop may end before.
void Lineariser::emit_last_iteration(const std::vector<Task*>& group, size_t range, int64_t value,
                                     LinearId end) {
  const bool is_sure = !run_ends_.contains(kernel_.ranges[range].range.node());
  const LinearId both[] = {index_constant(value), end};
  if (!is_sure) tree_.open(Op::If, kVoid, {elementwise_op(Op::Less, kBool, both)});
  emit_iteration(group, range, value);
  if (!is_sure) tree_.close();
}

// Where a loop over a range of known size ends, if that is known; else its size.
int64_t Lineariser::end_of(size_t range, LinearId end) const {
  const int64_t size = kernel_.ranges[range].range.src(0).const_int();
  const LinearOp& op = tree_.op(end);
  return op.op == Op::Const ? std::min(size, op.imm) : size;
}

void Lineariser::close_group(const std::vector<Task*>& group, size_t range) {
  invariant(states_[range].kind == RangeState::Closed, "a range is one loop at a time");
  LoopBounds limits = loop_bounds(group, range);
  states_[range].end = limits.end;
  if (tiles_[range]) {
    emit_balanced(group, range, std::move(limits));
    for (Task* t : group) t->todo &= ~bit(range);
    return;
  }
  const std::optional<Peel> peel = find_peel(group, range, limits.end);
  const std::optional<Split> split = peel ? std::nullopt : find_split(group, range);
  if (split) {
    // Whole tiles, then what the last one has left.
    const LinearId at = scalar_index(split->last);
    const LinearId ends[] = {limits.end, at};
    const LinearId begins[] = {limits.begin, at};
    LoopBounds whole = limits;
    whole.end = elementwise_op(Op::Min, kInt64, ends);
    whole.facts.insert(whole.facts.end(), split->facts.begin(), split->facts.end());
    emit_loop(group, range, whole);
    limits.begin = elementwise_op(Op::Max, kInt64, begins);
    emit_loop(group, range, limits);
  } else if (!peel) {
    emit_loop(group, range, limits);
  } else {
    const int64_t size = kernel_.ranges[range].range.src(0).const_int();
    const int64_t end = end_of(range, limits.end);
    for (int64_t i = 0; i < peel->first; ++i) emit_iteration(group, range, i);
    LoopBounds after = limits;
    const LinearId begins[] = {limits.begin, index_constant(peel->first)};
    const LinearId ends[] = {limits.end, index_constant(peel->last)};
    limits.begin = elementwise_op(Op::Max, kInt64, begins);
    limits.end = elementwise_op(Op::Min, kInt64, ends);
    limits.facts.insert(limits.facts.end(), peel->facts.begin(), peel->facts.end());
    if (peel->first < peel->last) emit_loop(group, range, limits);
    // An iteration is known by its distance from either end of the range, which a loop that ends
    // before it does not have.
    after.begin = limits.end;
    if (end < size) emit_loop(group, range, after);
    for (int64_t i = peel->last; end == size && i < size; ++i)
      emit_last_iteration(group, range, i, after.end);
  }
  for (Task* t : group) t->todo &= ~bit(range);
}

// The unrolled ranges that a task has instances for: its own first, since they are reduced.
RangeSet Lineariser::value_ranges(const Task& task) {
  RangeSet set = task.own;
  for (const UOp& s : task.node.src()) set |= free_of(s);
  RangeSet free = set & unrolled_;
  for (size_t i = 0; i < states_.size(); ++i)
    if (states_[i].kind == RangeState::Fixed) free &= ~bit(i);
  return free;
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
      RangeState& state = states_[positions[i]];
      const auto n = static_cast<size_t>(kernel_.ranges[positions[i]].range.src(0).const_int());
      state.kind = RangeState::Fixed;
      state.value = static_cast<int64_t>(rest % n);
      is_beyond = is_beyond || (state.limit && state.value >= state.limit);
      rest /= n;
    }
    if (!is_beyond) body(instance);
  }
  for (size_t p : positions) states_[p].kind = RangeState::Closed;
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

void Lineariser::accumulate(Task& task, size_t instance, const Guards& guards) {
  const LinearId acc = task.accumulators[instance];
  if (task.own & dots_) return accumulate_words(task, acc, guards);
  const DType dtype = tree_.op(acc).dtype;
  const Op op = task.node.reduce_arg().op;
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

// What the kernel asks for where this loop is the innermost of those that its place depends on.
void Lineariser::prefetch(size_t range) {
  for (const KernelPrefetch& p : kernel_.prefetches) {
    const RangeSet loops = free_of(p.index) & loops_;
    if ((loops & ~open_) || loops >> range != 1) continue;
    const RangeSet first = pending_in(free_of(p.index));  // once, not for each
    for (RangeSet set = first; set; set &= set - 1) {
      RangeState& state = states_[static_cast<size_t>(std::countr_zero(set))];
      state.kind = RangeState::Fixed;
      state.value = 0;
    }
    relied_on_ = 0;
    const int64_t bytes = p.element.bytes();
    const Place at = place(value_of(p.param), p.index, bytes);
    tree_.add(tree_.depth(), Op::Prefetch, kVoid, {at.address, at.index}, at.displacement,
              static_cast<int32_t>(bytes));
    for (RangeSet set = first; set; set &= set - 1) {
      const auto i = static_cast<size_t>(std::countr_zero(set));
      states_[i].kind = vec_ & bit(i) ? RangeState::Lane : RangeState::Closed;
    }
  }
}

// Closes one instance of a task in the present block: its guards decide whether, and for which
// lanes.
// Stores `beside` it have the same guards: the values of all are made before any is stored, since
// one may be stored where another's operands are.
void Lineariser::close_instance(Task& task, size_t instance, Step step,
                                std::span<Task* const> beside) {
  const int64_t lanes = lanes_in((free_of(task.node) | task.own));
  for (const UOp& fact : kernel_.facts)
    if (!(free_of(fact) & ~free_of(task.node) & ~task.own) && impossible(fact)) return;
  const std::vector<UOp> facts = guards_of_task(task);
  std::vector<Condition> conditions;
  for (const UOp& fact : facts) conditions.push_back(condition(fact, lanes));
  const Guards guards = guards_of(conditions, lanes);
  if (guards.never) return;
  const size_t known_before = known_.size();
  if (guards.scalar) {
    tree_.open(Op::If, kVoid, {*guards.scalar});
    for (size_t i = 0; i < facts.size(); ++i)
      if (conditions[i].kind == Condition::Scalar) known_.push_back({facts[i], tree_.depth()});
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
    Graph& graph = node.graph();
    UOp flat = graph.integer(0);
    for (size_t i = 1; i < node.src().size(); ++i)
      flat = add(flat, mul(node.src(i), node.ints()[i - 1]));
    if (task.own & dots_) return fill_words(task, flat, guards, lanes);
    store(node, task.accumulators.front(), flat, value_of(node.src(0)), guards.mask, lanes);
  } else if (node.op() == Op::Check) {
    const LinearId ok = value_of(node.src(0));
    const LinearId position = scalar_of(form_of(node.src(1)));
    tree_.add(tree_.depth(), Op::Check, kVoid, {ok, position}, node.int_arg());
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

// The register that holds an instance of the sum: this trip's part, to which is added what the
// destination holds.  Trips that are peeled share a block, so each begins anew, and so does what is
// made of the sum.
void Lineariser::begin_part() {
  for (const UOp& u : made_of_sum_) tree_.forget(key_of(u));
  LinearId part = value_of(outer_.src(0));
  const LinearOp& op = tree_.op(part);
  if (op.op != Op::Accumulator) part = tree_.add(tree_.depth(), Op::Accumulator, op.dtype, {part});
  tree_.remember(key_of(outer_), part);
}

LinearId Lineariser::part_of_sum() {
  const LinearId* part = tree_.find(key_of(outer_));
  invariant(part != nullptr, "a part of a sum is begun before it is used");
  return *part;
}

LinearId Lineariser::any_outer_beyond_first() {
  LinearId sum = index_constant(0);
  for (size_t i = 1; i < outer_.src().size(); ++i) {
    const LinearId both[] = {sum, scalar_index(outer_.src(i))};
    sum = elementwise_op(Op::Add, kInt64, both);
  }
  const LinearId both[] = {index_constant(0), sum};
  return elementwise_op(Op::Less, kBool, both);
}

LinearId Lineariser::all_outer_last() {
  LinearId all = constant(kBool, 1);
  for (size_t i = 1; i < outer_.src().size(); ++i) {
    const UOp& r = outer_.src(i);
    const LinearId next_of[] = {scalar_index(r), index_constant(1)};
    const LinearId next[] = {elementwise_op(Op::Add, kInt64, next_of),
                             states_[kernel_.position(r)].end};
    const LinearId both[] = {all, elementwise_op(Op::Equal, kBool, next)};
    all = elementwise_op(Op::And, kBool, both);
  }
  return all;
}

// A trip of the outer loops: the first stores its part, later ones add theirs to what is stored,
// and the last makes the store's value of the sum.
void Lineariser::add_into_destination(Task& store) {
  const RangeSet all = value_ranges(store);
  const auto under = [&](LinearId condition, Step step) {
    const LinearOp& op = tree_.op(condition);
    if (op.op == Op::Const && op.imm == 0) return;
    const bool always = op.op == Op::Const;
    if (!always) tree_.open(Op::If, kVoid, {condition});
    for_each_instance(all, [&](size_t instance) { close_instance(store, instance, step); });
    if (!always) tree_.close();
  };
  for_each_instance(all, [&](size_t) { begin_part(); });
  under(any_outer_beyond_first(), Step::AddDestination);
  if (store.node.src(1) == outer_) return under(constant(kBool, 1), Step::StorePart);
  const LinearId last = all_outer_last();
  const LinearId other = elementwise_op(Op::Not, kBool, std::span(&last, 1));
  under(last, Step::Close);
  under(other, Step::StorePart);
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
  for_each_instance(all & ~own_accumulator, [&](size_t) {
    for_each_instance(own_accumulator, [&](size_t instance) { close_instance(task, instance); });
  });
}

// The loops are closed: grouped accumulators and lanes fold into the value.
void Lineariser::finish(Task& task) {
  const UOp& node = task.node;
  if (node.op() == Op::Last) return remember_state(node);
  if (node.op() == Op::Stage) {
    const LinearId base = tree_.add(tree_.depth(), Op::Address, kAddress,
                                    {task.accumulators.front(), index_constant(0)}, 1);
    kept_.push_back(node);
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
  kept_.push_back(node);
  for (auto& [key, value] : sums) {
    if (fold_lanes)
      value = tree_.add(here, Op::Fold, node.dtype(), {value}, 0, static_cast<int32_t>(op));
    tree_.remember(key, value);
  }
}

LinearProgram linearize(const Kernel& kernel, const Target& target) {
  const BalancedKernel balanced = balance_tiles(split_outer_reduction(kernel));
  LinearProgram program = Lineariser(balanced, target).run();
  verify(program);
  return program;
}

}  // namespace tiny
