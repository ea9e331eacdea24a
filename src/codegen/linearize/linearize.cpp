#include "codegen/linearize/linearize.h"

#include <algorithm>
#include <bit>

#include "base/checked.h"
#include "base/error.h"
#include "codegen/linear/masked_blocks.h"
#include "codegen/linearize/lineariser.h"
#include "codegen/linearize/split_reduce.h"
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
  program_.stop = kernel_.roots.front().graph().stop();
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
  program_.scratch_bytes = std::max(program_.scratch_bytes, passing_end_);
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
  // What an iteration outside of this loop has folded is known, but not where that lies now.
  if (u.op() == Op::Running && !tree_.find(state_key(u))) return false;
  std::vector<size_t> fixed;
  for (RangeSet set = free_of(u) & unrolled_; set; set &= set - 1) {
    const auto i = static_cast<size_t>(std::countr_zero(set));
    if (fixed_ & bit(i)) continue;
    fix(i, 0);
    fixed.push_back(i);
  }
  const bool known = tree_.find(key_of(u)) != nullptr;
  for (size_t i : fixed) release(i);
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

// A loop over the range begins, in which its value is this.
void Lineariser::open_loop(size_t range, LinearId value) {
  states_[range].kind = RangeState::Open;
  states_[range].loop = value;
  open_ |= bit(range);
  ++nest_;
}

void Lineariser::emit_loop(const std::vector<Task*>& group, size_t range,
                           const LoopBounds& limits) {
  const LinearOp& begin = tree_.op(limits.begin);
  const LinearOp& end = tree_.op(limits.end);
  if (begin.op == Op::Const && end.op == Op::Const && begin.imm >= end.imm) return;
  const LinearId loop = tree_.open(Op::Loop, kInt64, {limits.begin, limits.end}, 1);
  if (kernel_.ranges[range].overlaps) tree_.set_mark(loop);
  open_loop(range, loop);
  for (const UOp& fact : limits.facts) know(fact);
  close_inside(group, range);
  known_.resize(known_.size() - limits.facts.size());
  open_ &= ~bit(range);
  release(range);
  tree_.close();
}

// One iteration of a loop with its range as a constant: conditions fold, instances die.
void Lineariser::emit_iteration(const std::vector<Task*>& group, size_t range, int64_t value) {
  const bool threaded = kernel_.ranges[range].kind == RangeKind::Thread;
  if (threaded) {
    const LinearId at = index_constant(value);
    const LinearId from[] = {tree_.add(0, Op::LaunchArg, kInt64, {}, 0), at};
    const LinearId to[] = {at, tree_.add(0, Op::LaunchArg, kInt64, {}, 1)};
    const LinearId both[] = {elementwise_op(Op::LessEqual, kBool, from),
                             elementwise_op(Op::Less, kBool, to)};
    tree_.open(Op::If, kVoid, {elementwise_op(Op::And, kBool, both)});
  }
  fix(range, value);
  open_ |= bit(range);
  close_inside(group, range);
  open_ &= ~bit(range);
  release(range);
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

// What the kernel asks for where this loop is the innermost of those that its place depends on.
void Lineariser::prefetch(size_t range) {
  for (const KernelPrefetch& p : kernel_.prefetches) {
    const RangeSet loops = free_of(p.index) & loops_;
    if ((loops & ~open_) || loops >> range != 1) continue;
    const RangeSet first = pending_in(free_of(p.index));  // once, not for each
    for (RangeSet set = first; set; set &= set - 1)
      fix(static_cast<size_t>(std::countr_zero(set)), 0);
    relied_on_ = 0;
    const int64_t bytes = p.element.bytes();
    const Place at = place(value_of(p.param), p.index, bytes);
    tree_.add(tree_.depth(), Op::Prefetch, kVoid, {at.address, at.index}, at.displacement,
              static_cast<int32_t>(bytes));
    for (RangeSet set = first; set; set &= set - 1)
      release(static_cast<size_t>(std::countr_zero(set)));
  }
}

LinearProgram linearize(const Kernel& kernel, const Target& target) {
  BalancedKernel balanced = balance_tiles(split_outer_reduction(kernel));
  if (!balanced.outer) leave_out_masked_blocks(balanced.kernel);
  return Lineariser(balanced, target).run();
}

}  // namespace tiny
