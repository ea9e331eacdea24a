#include "codegen/linearize/closers.h"

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "codegen/options/stage.h"
#include "ir/fold.h"
#include "rules/symbolic.h"

namespace tiny {

void Closers::declare_stage(Task& task) {
  const UOp& node = task.node;
  int64_t size = 1;
  for (size_t i = 1; i < node.src().size(); ++i)
    size += (prover_.bounds_of(node.src(i).src(0)).hi - 1) * node.stage_arg().strides[i - 1];
  const bool is_shared = node.stage_arg().is_shared;
  int64_t& used = is_shared ? program_.shared_bytes : program_.scratch_bytes;
  // The loops that it was filled in before, where several are, have ended: it lies there again.
  const int64_t* const before = is_shared ? shared_at_.find(node) : nullptr;
  const int64_t offset = before ? *before : used;
  if (!before) {
    used += round_up(std::max<int64_t>(size, 1) * node.dtype().bytes(),
                     shared_line(nest_.kernel(), node));
  }
  // What is filled now has been read: by the step before this one in a loop, by a loop before.
  if (is_shared && (before || emit_.depth() > 0)) emit_.add(emit_.depth(), Op::Barrier, kVoid);
  if (is_shared && !before) shared_at_.insert(node, offset);
  const Op memory = is_shared ? Op::Shared : Op::Scratch;
  task.accumulators.push_back(emit_.add(0, memory, kAddress, {}, offset));
}

// The axes of the group that the ranges run over, as bits.
uint8_t Closers::axes_of(RangeSet ranges) const {
  uint8_t axes = 0;
  for (RangeSet set = ranges & nest_.local(); set; set &= set - 1)
    axes |= static_cast<uint8_t>(1 << nest_.at(static_cast<size_t>(std::countr_zero(set))).axis);
  return axes;
}

// What all threads along an axis would store is stored by the first of them; nothing where each
// stores something else, or for itself alone.
std::optional<LinearId> Closers::is_first_thread(const Task& task) {
  const UOp& node = task.node;
  const bool is_for_all = node.op() == Op::Store || node.op() == Op::Check ||
                          (is_stage(node) && node.stage_arg().is_shared);
  if (!is_for_all) return std::nullopt;
  const uint8_t axes = axes_of(nest_.free_of(node) | task.own);
  std::optional<LinearId> first;
  for (size_t axis = 0; axis < kGroupAxes; ++axis) {
    if (program_.group[axis] == 1 || (axes >> axis & 1)) continue;
    const LinearId at = emit_.add(0, Op::LaunchArg, kInt64, {}, 3 + static_cast<int64_t>(axis));
    const LinearId is_here = emit_.equals(at, 0);
    first = first ? emit_.elementwise(Op::And, kBool, {*first, is_here}) : is_here;
  }
  return first;
}

void Closers::declare(Task& task) {
  if (task.node.op() == Op::Stage) return declare_stage(task);
  if (task.node.op() != Op::Reduce) return;
  // Lanes that the value does not depend on count too: it is added once for each.
  const RangeSet free = nest_.free_of(task.node);
  const DType dtype = is_matrix_sum(task.node)
                          ? Matrices::dtype_of(task.node)
                          : task.node.dtype().with_lanes(nest_.lanes_in(free | task.own));
  const LinearId nothing =
      emit_.constant(dtype, identity_bits(task.node.reduce_arg().op, task.node.dtype()));
  const UOp continued = running_.continued_by(task.node, task.own);
  const RangeSet apart = instances_of(task) & (free | nest_.upcast());
  nest_.for_each_instance(apart, [&](size_t instance) {
    task.accumulators.resize(instance + 1);
    const LinearId first = continued ? begin_continued(task, continued) : nothing;
    task.accumulators[instance] = emit_.add(emit_.depth(), Op::Accumulator, dtype, {first});
  });
}

// Of the elements of a product of matrices all at once.
LinearId Closers::begin_continued(const Task& task, const UOp& running) {
  std::optional<LinearId> first;
  nest_.for_each_instance(matrices_.elements_of(task.node) & nest_.free_of(running), [&](size_t) {
    const LinearId part = running_.begin_continued(running);
    if (!first) {
      first = part;
      return;
    }
    const DType dtype = emit_.op(part).dtype;
    first = emit_.add(emit_.depth(), Op::Join, dtype.with_lanes(2 * int64_t{dtype.lanes}),
                      {*first, part});
  });
  return *first;
}

// Whether a factor of a product lies in padding in all lanes here, so that a sum can do without it
// (docs/semantics.md).
bool Closers::multiplies_padding(const UOp& term) {
  if (term.op() != Op::Mul) return false;
  std::vector<UOp> factors{term};
  while (!factors.empty()) {
    const UOp u = std::move(factors.back());
    factors.pop_back();
    if (u.op() == Op::Mul || u.op() == Op::Cast)
      factors.insert(factors.end(), u.src().rbegin(), u.src().rend());
    else if (u.op() == Op::Load && !conditions_.of_read(u).empty() &&
             emit_.op(values_.value_of(u)).op == Op::Const)
      return true;
  }
  return false;
}

void Closers::accumulate(const Task& task, size_t instance, const Guards& guards) {
  const LinearId acc = task.accumulators[instance];
  if (is_matrix_sum(task.node)) return matrices_.accumulate(task, acc);
  if (task.own & nest_.words()) return words_.accumulate(task, acc, guards);
  const DType dtype = emit_.op(acc).dtype;
  const Op op = task.node.reduce_arg().op;
  if (op == Op::Add && multiplies_padding(task.node.src(0))) return;
  LinearId value = emit_.widened(values_.value_of(task.node.src(0)), dtype.lanes);
  if (guards.mask) {
    const LinearId nothing = emit_.constant(dtype, identity_bits(op, dtype.element()));
    value = emit_.elementwise(Op::Where, dtype.element(), {*guards.mask, value, nothing});
  }
  const size_t here = emit_.depth();
  const LinearId sum = emit_.add(here, op, dtype, {acc, value});
  emit_.add(here, Op::Set, kVoid, {acc, sum});
}

// Closes one instance of a task in the present block: its guards decide whether, and for which
// lanes.
// Stores `beside` it have the same guards: the values of all are made before any is stored, since
// one may be stored where another's operands are.
void Closers::close_instance(const Task& task, size_t instance, Step step, Tasks beside) {
  const int64_t lanes = nest_.lanes_in(nest_.free_of(task.node) | task.own);
  const Conditions::TaskFacts& of_task = conditions_.facts_of(task);
  for (const UOp& fact : of_task.known)
    if (prover_.impossible(fact)) return;
  const std::vector<UOp>& facts = of_task.guards;
  std::vector<Condition> conditions;
  for (const UOp& fact : facts) conditions.push_back(predicates_.condition(fact, lanes));
  const Guards guards = predicates_.all_of(conditions, lanes);
  if (guards.never) return;
  const size_t known_before = prover_.known();
  if (guards.scalar) {
    emit_.open(Op::If, kVoid, {*guards.scalar});
    for (size_t i = 0; i < facts.size(); ++i)
      if (conditions[i].kind == Condition::Scalar) prover_.know(facts[i], emit_.depth());
  }
  const std::optional<LinearId> first = is_first_thread(task);
  if (first) emit_.open(Op::If, kVoid, {*first});
  for (const Task* t : beside) {
    emit_.set_relied_on(0);
    values_.value_of(t->node.src(1));
  }
  perform(task, instance, guards, step);
  for (const Task* t : beside)
    if (t != &task) perform(*t, instance, guards, step);
  if (first) emit_.close();
  prover_.forget_beyond(known_before);
  if (guards.scalar) emit_.close();
}

void Closers::perform(const Task& task, size_t instance, const Guards& guards, Step step) {
  const UOp& node = task.node;
  const int64_t lanes = nest_.lanes_in(nest_.free_of(node) | task.own);
  emit_.set_relied_on(0);
  switch (node.op()) {
    case Op::Reduce:
      return accumulate(task, instance, guards);
    case Op::Stage:
      return fill(task, guards, lanes);
    case Op::Check:
      return check(node, guards.mask, lanes);
    default:
      return perform_store(task, guards, step, lanes);
  }
}

void Closers::fill(const Task& task, const Guards& guards, int64_t lanes) {
  if (task.own & nest_.words()) return words_.fill(task, guards, lanes);
  const LinearId value = values_.value_of(task.node.src(0));
  accesses_.store(task.node, task.accumulators.front(), forms_.flat_index(task.node), value,
                  guards.mask, lanes);
}

void Closers::perform_store(const Task& task, const Guards& guards, Step step, int64_t lanes) {
  const UOp& node = task.node;
  if (step == Step::AddDestination) {
    const LinearId sum = outer_.part();
    const LinearId before = accesses_.load_destination(node, guards.mask, lanes);
    const Op op = outer_.node().reduce_arg().op;
    const LinearId next = emit_.add(emit_.depth(), op, emit_.op(sum).dtype, {before, sum});
    emit_.add(emit_.depth(), Op::Set, kVoid, {sum, next});
    return;
  }
  LinearId value = 0;
  if (step == Step::AddPart) {
    const LinearId before = accesses_.load_destination(node, guards.mask, lanes);
    value = values_.value_of(outer_.added());
    value = emit_.elementwise(Op::Add, emit_.op(value).dtype, {before, value});
  } else {
    value = step == Step::StorePart ? outer_.part() : values_.value_of(node.src(1));
  }
  const LinearId base = values_.value_of(node.src(0));
  accesses_.store(node, base, forms_.flat_index(node), value, guards.mask, lanes);
}

// Which lane failed is asked where one did.
void Closers::check(const UOp& node, std::optional<LinearId> mask, int64_t lanes) {
  LinearId ok = values_.value_of(node.src(0));
  if (lanes == 1) {
    const LinearId position = values_.scalar_of(forms_.form_of(node.src(1)));
    emit_.add(emit_.depth(), Op::Check, kVoid, {ok, position}, node.int_arg());
    return;
  }
  const LinearId yes = emit_.constant(kBool, 1);
  ok = emit_.widened(ok, lanes);
  if (mask)
    ok = emit_.elementwise(Op::Or, kBool, {ok, emit_.elementwise(Op::Xor, kBool, {*mask, yes})});
  const auto fold = [this](Op op, LinearId value) {
    return emit_.add(emit_.depth(), Op::Fold, emit_.op(value).dtype.element(), {value}, 0,
                     static_cast<int32_t>(op));
  };
  emit_.open(Op::If, kVoid, {emit_.elementwise(Op::Xor, kBool, {fold(Op::And, ok), yes})});
  const LinearId last = emit_.index_constant(INT64_MAX);
  const LinearId positions = addresses_.lanes_of_index(node.src(1), lanes);
  const LinearId first = fold(Op::Min, emit_.elementwise(Op::Where, kInt64, {ok, last, positions}));
  emit_.add(emit_.depth(), Op::Check, kVoid, {emit_.constant(kBool, 0), first}, node.int_arg());
  emit_.close();
}

void Closers::instantiate(Tasks tasks) {
  std::vector<Task*> beside;
  for (Task* t : tasks)
    if (!outer_ && t->node.op() == Op::Store && (beside.empty() || t->own == beside.front()->own))
      beside.push_back(t);
  if (beside.size() < 2) beside.clear();
  for (Task* t : tasks) {
    if (std::ranges::find(beside, t) == beside.end())
      instantiate(*t);
    else if (t == beside.front())
      nest_.for_each_instance(instances_of(*t), [&](size_t instance) {
        close_instance(*t, instance, Step::Close, beside);
      });
  }
}

void Closers::instantiate(const Task& task) {
  const RangeSet all = instances_of(task);
  if (outer_ && task.node.op() == Op::Store) return add_into_destination(task);
  if (task.node.op() == Op::Running) return running_.step(task);
  if (task.node.op() == Op::Last) return;
  if (task.node.op() != Op::Reduce) {
    nest_.for_each_instance(all, [&](size_t instance) { close_instance(task, instance); });
    return;
  }
  // Steps that share accumulators come outermost.
  const RangeSet own_accumulator = all & (nest_.free_of(task.node) | nest_.upcast());
  const auto each = [&](const std::function<void(size_t)>& body) {
    nest_.for_each_instance(all & ~own_accumulator,
                            [&](size_t) { nest_.for_each_instance(own_accumulator, body); });
  };
  if (conditions_.is_window(task.node)) return sum_window(task, each);
  each([&](size_t instance) { close_instance(task, instance); });
}

// A trip of the outer loops: the first stores its part, later ones add theirs to what is stored,
// and the last makes the store's value of the sum; or the first makes that of its part, and later
// ones add what theirs add to it.
void Closers::add_into_destination(const Task& store) {
  const RangeSet all = instances_of(store);
  const auto under = [&](LinearId condition, Step step) {
    const LinearOp& op = emit_.op(condition);
    if (op.op == Op::Const && op.imm == 0) return;
    const bool always = op.op == Op::Const;
    if (!always) {
      emit_.open(Op::If, kVoid, {condition});
      emit_.place_within(emit_.depth());
    }
    nest_.for_each_instance(all, [&](size_t instance) { close_instance(store, instance, step); });
    emit_.place_within(0);
    if (!always) emit_.close();
  };
  nest_.for_each_instance(all, [&](size_t) { outer_.begin_part(); });
  const LinearId beyond = outer_.is_beyond_first();
  if (outer_.added()) {
    under(emit_.elementwise(Op::Not, kBool, {beyond}), Step::Close);
    return under(beyond, Step::AddPart);
  }
  under(beyond, Step::AddDestination);
  if (store.node.src(1) == outer_.node()) return under(emit_.constant(kBool, 1), Step::StorePart);
  const LinearId last = outer_.is_last();
  const LinearId other = emit_.elementwise(Op::Not, kBool, {last});
  under(last, Step::Close);
  under(other, Step::StorePart);
}

// The instances of a window that the same edge leaves out stand together and are jumped over: a
// branch for all of them costs less than a mask for each, and nothing beyond the edge is touched.
void Closers::sum_window(const Task& task, const EachInstance& each) {
  const WindowSides window = sides_of_window(conditions_.of_window(task), each, forms_, prover_);
  for (size_t s = 0; s < window.sides.size(); ++s) {
    if (window.stand_with[s] != s) continue;
    const std::vector<Edge>& edges = window.sides[s].edges;
    size_t next = 0;
    bool is_open = false;
    const size_t known_before = prover_.known();
    each([&](size_t instance) {
      if (window.stand_with[window.side_of[next++]] != s) return;
      if (s > 0 && !is_open) {
        std::vector<Condition> open;
        for (const Edge& e : edges) open.push_back(predicates_.condition(e.condition, 1));
        emit_.open(Op::If, kVoid, {*predicates_.all_of(open, 1).scalar});
        for (const Edge& e : edges) prover_.know(e.condition, emit_.depth());
        is_open = true;
      }
      close_instance(task, instance);
    });
    prover_.forget_beyond(known_before);
    if (is_open) emit_.close();
  }
}

void Closers::finish(const Task& task) {
  const UOp& node = task.node;
  if (node.op() == Op::Last) return running_.remember_state(node);
  if (node.op() == Op::Reduce) return finish_sum(task);
  if (node.op() != Op::Stage) return;
  if (node.stage_arg().is_shared) emit_.add(emit_.depth(), Op::Barrier, kVoid);
  const LinearId zero = emit_.index_constant(0);
  const LinearId base =
      emit_.add(emit_.depth(), Op::Address, kAddress, {task.accumulators.front(), zero}, 1);
  emit_.remember(nest_.key_of(node), base);
}

// Threads of a warp have different elements of the sum: what is folded are those along axis 2.
void Closers::finish_matrices(const Task& task, const Sums& sums) {
  constexpr uint8_t kAxesOfWarp = 3;
  const UOp& node = task.node;
  const auto axes = static_cast<uint8_t>(axes_of(task.own) & ~kAxesOfWarp);
  nest_.for_each_instance(instances_of(task) & nest_.free_of(node), [&](size_t) {
    const InstanceKey key = nest_.key_of(node);
    LinearId value = std::ranges::find(sums, key, &Sums::value_type::first)->second;
    if (axes != 0)
      value = emit_.add(emit_.depth(), Op::GroupFold, emit_.op(value).dtype, {value}, axes,
                        static_cast<int32_t>(Op::Add));
    matrices_.remember_rows(node, value);
  });
}

void Closers::finish_sum(const Task& task) {
  const UOp& node = task.node;
  const Op op = node.reduce_arg().op;
  const bool fold_lanes =
      (task.own & nest_.lanes()) != 0 && emit_.op(task.accumulators.front()).dtype.lanes > 1;
  const RangeSet all = instances_of(task);
  const size_t here = emit_.depth();
  // Accumulators were declared with the grouped ranges among the others: collect by result.
  Sums sums;
  const RangeSet grouped = nest_.upcast() & task.own;
  nest_.for_each_instance(all & (nest_.free_of(node) | grouped), [&](size_t instance) {
    const InstanceKey key = nest_.key_of(node);
    const LinearId acc = task.accumulators[instance];
    const auto found =
        std::find_if(sums.begin(), sums.end(), [&](const auto& s) { return s.first == key; });
    if (found == sums.end())
      sums.emplace_back(key, acc);
    else
      found->second = emit_.add(here, op, emit_.op(acc).dtype, {found->second, acc});
  });
  if (is_matrix_sum(node)) return finish_matrices(task, sums);
  const uint8_t axes = axes_of(task.own);
  for (auto& [key, value] : sums) {
    if (axes != 0)
      value = emit_.add(here, Op::GroupFold, emit_.op(value).dtype, {value}, axes,
                        static_cast<int32_t>(op));
    if (fold_lanes)
      value = emit_.add(here, Op::Fold, node.dtype(), {value}, 0, static_cast<int32_t>(op));
    emit_.remember(key, value);
  }
}

}  // namespace tiny
