#include "codegen/linearize/lineariser.h"

#include <algorithm>
#include <bit>

#include "base/error.h"

namespace tiny {

ValueMakers::ValueMakers(NestState& at, LinearProgram& program, const Target& target,
                         bool are_final)
    : emit(program),
      leaves(emit, at.nest, at.forms, at.prover, at.conditions, predicates, addresses, accesses,
             running),
      values(emit, at.nest, at.forms, leaves),
      predicates(emit, at.nest, at.forms, at.prover, values),
      addresses(emit, at.nest, at.forms, at.prover, values),
      apart(emit, at.nest, at.forms, addresses, program, target),
      accesses(emit, at.nest, at.forms, values, at.conditions, predicates, addresses, apart,
               are_final),
      running(emit, at.nest, at.forms, at.prover, values, addresses, accesses, program) {
}

Lineariser::Lineariser(const BalancedKernel& balanced, const Target& target)
    : balanced_(balanced),
      at_(balanced.kernel),
      make_(at_, program_, target, !balanced.outer),
      words_(make_.emit, at_.nest, at_.forms, at_.prover, at_.conditions, make_.values,
             make_.predicates, make_.addresses, make_.accesses),
      matrices_(make_.emit, at_.nest, make_.values, make_.addresses, make_.accesses, words_),
      outer_(make_.emit, at_.nest, make_.values, balanced.outer, balanced.added),
      closers_(make_.emit, at_.nest, at_.forms, at_.prover, at_.conditions, make_.values,
               make_.predicates, make_.addresses, make_.accesses, make_.running, words_, matrices_,
               outer_, program_),
      limits_(make_.emit, at_.nest, at_.forms, at_.prover, at_.conditions, make_.values,
              make_.running),
      peeling_(at_.nest, at_.forms, at_.prover, at_.conditions),
      cuts_(make_.emit, make_.values) {
  invariant(!balanced.kernel.roots.empty(), "a kernel has a root");
}

// Params are known by a node of their own.
void Lineariser::begin_program() {
  const Kernel& kernel = balanced_.kernel;
  program_.name = kernel.name;
  program_.stop = kernel.roots.front().graph().stop();
  program_.grouped = at_.nest.is_grouped();
  for (const KernelRange& r : kernel.ranges)
    if (r.kind == RangeKind::Local) program_.group[r.axis] = r.range.src(0).const_int();
  for (const KernelParam& p : kernel.params)
    program_.params.push_back({p.element, p.read || (p.written && outer_), p.written});
  for (const UOp& v : kernel.variables) {
    const VariableArg& arg = v.variable_arg();
    program_.variables.push_back({arg.name, arg.min, arg.max});
  }
  Graph& graph = kernel.roots.front().graph();
  for (size_t i = 0; i < kernel.params.size(); ++i) {
    const auto slot = static_cast<int64_t>(i);
    const UOp param = graph.make(Op::Param, {}, slot, kernel.params[i].element);
    make_.emit.remember(at_.nest.key_of(param), make_.emit.add(0, Op::Param, kAddress, {}, slot));
  }
}

LinearProgram Lineariser::run() {
  begin_program();
  const Kernel& kernel = balanced_.kernel;
  std::vector<Task> tasks;
  for (const UOp& root : kernel.roots) {
    RangeSet own = at_.nest.free_of(root);
    if (outer_)
      for (const UOp& r : outer_.node().src().subspan(1)) own |= bit(kernel.position(r));
    tasks.push_back({root, own & at_.nest.loops(), own, {}});
  }
  Group pointers;
  for (Task& t : tasks) pointers.push_back(&t);
  close_tasks(pointers);
  program_.scratch_bytes = std::max(program_.scratch_bytes, make_.apart.scratch_end());
  make_.emit.flatten();
  return std::move(program_);
}

// A reduction, stage or running value with all the loops it closes.
Task Lineariser::started(const UOp& u) {
  RangeSet own = 0;
  for (size_t i = 1; closes_ranges(u) && i < u.src().size(); ++i)
    own |= bit(balanced_.kernel.position(u.src(i)));
  // What runs along a loop is folded for all coordinates inside of it.
  const RangeSet inside = u.op() == Op::Last ? at_.nest.free_of(u) & ~at_.nest.open() : 0;
  return {u, (own | inside) & at_.nest.loops(), own, {}};
}

// The reductions and stages below `tasks` that can be closed here: all their outer loops are open.
// Sources come before users.
std::vector<Task> Lineariser::discover(const Group& tasks) {
  std::vector<UOp> roots;
  for (const Task* t : tasks)
    for (const UOp& s : t->node.src()) roots.push_back(s);
  std::vector<Task> found;
  for (const UOp& u : topological(roots)) {
    if ((!closes_ranges(u) && u.op() != Op::Running) || u == outer_.node()) continue;
    const RangeSet outside = u.op() == Op::Last ? make_.running.loops_outside(u)
                                                : at_.nest.free_of(u) & at_.nest.loops();
    if ((outside & ~at_.nest.open()) != 0) continue;
    const bool busy = std::ranges::any_of(tasks, [&](const Task* t) { return t->node == u; });
    if (!busy && !is_finished(u)) found.push_back(started(u));
  }
  return found;
}

// Whether a reduction or stage has its value here: all instances have, or none.
bool Lineariser::is_finished(const UOp& u) {
  if (u.op() == Op::Last) return make_.running.has_state(u);
  // What an iteration outside of this loop has folded is known, but not where that lies now.
  if (u.op() == Op::Running && !make_.running.has_state(u)) return false;
  const RangeSet pending = at_.nest.free_of(u) & at_.nest.unrolled() & ~at_.nest.fixed();
  for (RangeSet set = pending; set; set &= set - 1)
    at_.nest.fix(static_cast<size_t>(std::countr_zero(set)), 0);
  const bool known = make_.emit.find(at_.nest.key_of(u)) != nullptr;
  for (RangeSet set = pending; set; set &= set - 1)
    at_.nest.release(static_cast<size_t>(std::countr_zero(set)));
  return known;
}

void Lineariser::close_tasks(const Group& tasks) {
  std::vector<Task> begun = discover(tasks);
  Group waiting;
  for (Task& t : begun) waiting.push_back(&t);
  const auto is_begun = [&](const Task* t) {
    return !begun.empty() && t >= begun.data() && t < begun.data() + begun.size();
  };
  const auto needs = [&](const Task* user, const Task* other) {
    std::vector<UOp> sources(user->node.src().begin(), user->node.src().end());
    // A sum that goes on from what runs along the loop needs what that is corrected by.
    const UOp continued = make_.running.continued_by(user->node, user->own);
    if (continued && continued.src().size() == 4) sources.push_back(UOp(continued.src(3)));
    const std::vector<UOp> below = topological(sources);
    return std::ranges::find(below, other->node) != below.end();
  };
  waiting.insert(waiting.end(), tasks.begin(), tasks.end());
  while (!waiting.empty()) {
    // What waits for nothing can go; those that begin with the same loop share it.
    Group ready;
    for (Task* t : waiting)
      if (std::ranges::none_of(waiting, [&](const Task* other) {
            return other != t && is_begun(other) && needs(t, other);
          }))
        ready.push_back(t);
    invariant(!ready.empty(), "tasks do not wait for each other");
    const RangeSet first = ready.front()->todo;
    Group group;
    for (Task* t : ready)
      if (first ? (t->todo && std::countr_zero(t->todo) == std::countr_zero(first)) : t->todo == 0)
        group.push_back(t);
    for (Task* t : group)
      if (is_begun(t)) closers_.declare(*t);
    if (first)
      close_group(group, static_cast<size_t>(std::countr_zero(first)));
    else
      closers_.instantiate(group);
    for (Task* t : group) {
      if (is_begun(t)) closers_.finish(*t);
      waiting.erase(std::ranges::find(waiting, t));
    }
  }
}

// Closes what the tasks of a loop have left to close inside of it.
void Lineariser::close_inside(const Group& group, size_t range) {
  prefetch(range);
  std::vector<Task> copies;
  for (const Task* t : group) copies.push_back(*t);
  Group inside;
  for (Task& t : copies) {
    t.todo &= ~bit(range);
    inside.push_back(&t);
  }
  close_tasks(inside);
}

// What the kernel asks for where this loop is the innermost of those that its place depends on.
void Lineariser::prefetch(size_t range) {
  LoopNest& nest = at_.nest;
  for (const KernelPrefetch& p : balanced_.kernel.prefetches) {
    const RangeSet loops = nest.free_of(p.index) & nest.loops();
    if ((loops & ~nest.open()) || loops >> range != 1) continue;
    const RangeSet first = nest.pending_in(nest.free_of(p.index));  // once, not for each
    for (RangeSet set = first; set; set &= set - 1)
      nest.fix(static_cast<size_t>(std::countr_zero(set)), 0);
    make_.emit.set_relied_on(0);
    const int64_t bytes = p.element.bytes();
    const Place at = make_.addresses.place(make_.values.value_of(p.param), p.index, bytes);
    make_.emit.add(make_.emit.depth(), Op::Prefetch, kVoid, {at.address, at.index}, at.displacement,
                   static_cast<int32_t>(bytes));
    for (RangeSet set = first; set; set &= set - 1)
      nest.release(static_cast<size_t>(std::countr_zero(set)));
  }
}

// Where a loop over a range of known size ends, if that is known, else its size; none for other
// ranges, and for the steps of a tile.
std::optional<int64_t> Lineariser::known_end(size_t range, LinearId end) const {
  if (!at_.nest.range(range).src(0).is_const() || at_.nest.state(range).limit) return std::nullopt;
  const LinearOp& op = make_.emit.op(end);
  const int64_t size = at_.nest.extent(range);
  return op.op == Op::Const ? std::min(size, op.imm) : size;
}

void Lineariser::close_group(const Group& group, size_t range) {
  invariant(at_.nest.state(range).kind == RangeState::Closed, "a range is one loop at a time");
  if (at_.nest.at(range).kind == RangeKind::Thread) program_.threaded = true;
  if (is_coordinate(range)) {
    emit_coordinate(group, range);
    for (Task* t : group) t->todo &= ~bit(range);
    return;
  }
  const bool is_whole = at_.nest.is_grouped() || make_.running.is_walked_whole(range);
  if (!is_whole && balanced_.tiles[range])
    emit_balanced(group, range);
  else
    emit_range(group, range, is_whole);
  for (Task* t : group) t->todo &= ~bit(range);
}

void Lineariser::emit_range(const Group& group, size_t range, bool is_whole) {
  const LoopBounds limits = limits_.bounds_of(group, range);
  at_.nest.set_end(range, limits.end);
  const std::optional<int64_t> end = known_end(range, limits.end);
  if (is_whole)
    emit_loop(group, range, limits);
  else if (const auto peel = end ? peeling_.find_peel(group, range, *end) : std::nullopt)
    emit_peeled(group, range, limits, *peel, *end);
  else if (const auto split = peeling_.find_split(group, range))
    emit_split(group, range, limits, *split);
  else
    emit_loop(group, range, limits);
}

}  // namespace tiny
