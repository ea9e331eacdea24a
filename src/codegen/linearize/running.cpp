#include "codegen/linearize/running.h"

#include <algorithm>

#include "base/checked.h"
#include "base/error.h"
#include "ir/build.h"
#include "ir/fold.h"

namespace tiny {

namespace {

constexpr int64_t kLine = 64;         // bytes
constexpr uint64_t kStateUse = 1;     // of an InstanceKey: where a running value lies
constexpr uint64_t kRegisterUse = 3;  // the register in which it runs
constexpr uint64_t kBeforeUse = 4;    // what that was before this step

}  // namespace

// The position of the range that a Running or Last follows.
size_t RunningValues::range_along(const UOp& node) const {
  return nest_.kernel().position(node.src(1));
}

RangeSet RunningValues::loops_outside(const UOp& last) {
  return nest_.free_of(last) & nest_.loops() & (bit(range_along(last)) - 1);
}

const RunningValues::State& RunningValues::state_of(const UOp& running) {
  const auto found = states_.find(running.node());
  if (found != states_.end()) return found->second;
  const size_t along = range_along(running);
  const RangeSet free = nest_.free_of(running) & ~bit(along);
  State state;
  state.size = 1;
  state.index = running.graph().integer(0);
  const auto add_dimension = [&](size_t position) {
    const UOp& range = nest_.range(position);
    state.index = add(state.index, mul(range, state.size));
    state.size =
        checked_mul(state.size, prover_.bounds_of(range.src(0)).hi, "a running value's size");
  };
  // Lanes side by side, then the innermost ranges.
  const RangeSet lanes = nest_.lanes();
  for (size_t i = 0; i < nest_.size(); ++i)
    if (free & lanes & bit(i)) add_dimension(i);
  for (size_t i = nest_.size(); i-- > 0;)
    if ((free & ~lanes & bit(i)) && (i > along || !(nest_.loops() & bit(i)))) add_dimension(i);
  const int64_t bytes = running.dtype().bytes();
  state.size = round_up(checked_mul(state.size, bytes, "a running value's size"), kLine) / bytes;
  state.offset = program_.scratch_bytes;
  program_.scratch_bytes += 2 * state.size * bytes;
  return states_.emplace(running.node(), std::move(state)).first->second;
}

// The address of a running value, in this block: no access of it is placed before.
LinearId RunningValues::state_base(const UOp& running) {
  const LinearId scratch = emit_.add(0, Op::Scratch, kAddress, {}, state_of(running).offset);
  return emit_.add(emit_.depth(), Op::Address, kAddress, {scratch, emit_.index_constant(0)}, 1);
}

// The place of what a step left.
UOp RunningValues::state_index(const UOp& running, const UOp& step) {
  const State& state = state_of(running);
  return add(mul(floor_mod(step, 2), state.size), state.index);
}

LinearId RunningValues::load_state(const UOp& running, LinearId base, const UOp& step) {
  const Place p = addresses_.place(base, state_index(running, step), running.dtype().bytes());
  const DType dtype = running.dtype().with_lanes(nest_.lanes_of(running));
  return accesses_.load_at(p, addresses_.depth_of(p), dtype, {});
}

// A Last node is known by the coordinates outside of its range.
InstanceKey RunningValues::state_key(const UOp& node) {
  const RangeSet outside = nest_.free_of(node) & nest_.loops() & (bit(range_along(node)) - 1);
  return nest_.key_at(node.node(), outside & nest_.fixed(), kStateUse);
}

// What is stored at each step needs no loop inside of its own.
bool RunningValues::in_registers(const UOp& node) {
  if (nest_.is_grouped()) return true;
  const UOp running = node.op() == Op::Running ? node : UOp(node.src(0));
  const size_t along = range_along(running);
  const RangeSet inside = nest_.free_of(running) & nest_.loops() & ~(2 * bit(along) - 1);
  return !nest_.at(along).reduced && inside == 0;
}

bool RunningValues::is_walked_whole(size_t position) {
  count_users();
  return std::ranges::any_of(continued_, [&](const auto& known) {
    return range_along(known.second) == position && in_registers(known.second);
  });
}

void RunningValues::remember_state(const UOp& node) {
  if (in_registers(node)) {
    emit_.remember(state_key(node), emit_.index_constant(0));
    return;
  }
  emit_.remember(state_key(node), state_base(node.op() == Op::Last ? UOp(node.src(0)) : node));
}

LinearId RunningValues::read(const UOp& node) {
  if (in_registers(node)) return read_register(node);
  const UOp running = node.src(0);
  const bool is_last = node.op() == Op::Last;
  const LinearId* base = emit_.find(state_key(is_last ? node : running));
  invariant(base != nullptr, "a running value is folded before it is read");
  const UOp& range = running.src(1);
  return load_state(running, *base, is_last ? sub(steps_of(range), 1) : add(range, 1));
}

// How many steps the loop of running values took, or takes.
UOp RunningValues::steps_of(const UOp& range) const {
  const auto found = ends_.find(range.node());
  return found == ends_.end() ? UOp(range.src(0)) : found->second;
}

bool RunningValues::may_end_before(size_t position) const {
  return ends_.contains(nest_.range(position).node());
}

UOp RunningValues::end_of_run(Tasks tasks, size_t position) {
  const UOp& r = nest_.range(position);
  ends_.erase(r.node());
  UOp needed;
  for (const Task* t : tasks) {
    if (t->node.op() != Op::Last) return {};
    const UOp& own = t->node.src(0).src(2);
    if (needed && !(needed == own)) return {};
    needed = own;
  }
  const std::optional<Affine> sum = forms_.fixed(needed);
  const int64_t c = sum ? sum->coefficient(r) : 0;
  if (c >= 0) return {};
  Affine rest{sum->constant, {}};
  for (const AffineTerm& term : sum->terms) {
    if (term.atom == r) continue;
    // All threads of a group walk a loop alike.
    if (!(nest_.free_of(term.atom) & (~nest_.open() | nest_.local()))) {
      rest.terms.push_back(term);
      continue;
    }
    const Interval values = prover_.bounds_of(term.atom);
    if (values.lo == INT64_MIN || values.hi == INT64_MAX) return {};
    rest.constant +=
        checked_mul(term.coefficient, term.coefficient > 0 ? values.hi : values.lo, "an index");
  }
  const UOp last = floor_div(to_uop(needed.graph(), rest), -c);
  const UOp end = minimum(r.src(0), add(maximum(last, 0), 1));
  if (end == r.src(0)) return {};
  ends_[r.node()] = end;
  return end;
}

void RunningValues::count_users() {
  if (!users_.empty()) return;
  for (const UOp& u : topological(nest_.kernel().roots)) {
    for (const UOp& s : u.src()) ++users_[s.node()];
    if (u.op() == Op::Running) continued_.emplace(u.src(0).node(), u);
  }
}

// Whether nothing but `running` reads what it folds.
bool RunningValues::is_only_user(const UOp& running) {
  count_users();
  return users_[running.src(0).node()] == 1;
}

// The register in which an instance is folded: that of the sum of this step, if nothing else reads
// it.
LinearId RunningValues::begin(const UOp& node) {
  emit_.set_relied_on(0);
  const int64_t lanes = nest_.lanes_of(node);
  const LinearId value = emit_.widened(values_.value_of(node.src(0)), lanes);
  const LinearOp& op = emit_.op(value);
  const bool is_own = op.op == Op::Accumulator && is_only_user(node);
  const LinearId part =
      is_own ? value : emit_.add(emit_.depth(), Op::Accumulator, op.dtype, {value});
  emit_.remember(nest_.key_of(node), part, emit_.relied_on());
  return part;
}

void RunningValues::fold(const UOp& node, LinearId base, LinearId part) {
  const DType dtype = emit_.op(part).dtype;
  LinearId before = load_state(node, base, add(node.src(1), 1));
  if (node.src().size() == 4) {
    emit_.set_relied_on(0);
    before = emit_.elementwise(Op::Mul, dtype.element(), {before, values_.value_of(node.src(3))});
  }
  const LinearId next = emit_.add(emit_.depth(), node.reduce_arg().op, dtype,
                                  {emit_.widened(before, dtype.lanes), part});
  emit_.add(emit_.depth(), Op::Set, kVoid, {part, next});
}

// A loop inside would make other values of one register.
void RunningValues::require_registers(const UOp& running) {
  const RangeSet free = nest_.free_of(running) & nest_.loops() & ~nest_.open();
  require(free == 0, Status::InvalidArgument,
          "option STREAM: what runs along blocks has loops inside of these, for which threads of a "
          "group have no registers");
}

LinearId RunningValues::read_register(const UOp& node) {
  const UOp running = node.src(0);
  InstanceKey key = nest_.key_of(running);
  key.use = node.op() == Op::Last ? kRegisterUse : kBeforeUse;
  const LinearId* found = emit_.find(key);
  invariant(found != nullptr, "a running value is folded before it is read");
  return *found;
}

// A sum whose parts threads or lanes fold would add what was before once for each of them.
UOp RunningValues::continued_by(const UOp& sum, RangeSet own) {
  if (!nest_.is_grouped() || sum.op() != Op::Reduce || sum.reduce_arg().op != Op::Add) return {};
  count_users();
  const auto found = continued_.find(sum.node());
  if (found == continued_.end() || users_[sum.node()] != 1) return {};
  const bool is_folded = (own & (nest_.local() | nest_.lanes() | nest_.upcast())) != 0;
  return is_folded && !is_matrix_sum(sum) ? UOp() : found->second;
}

// Outside of the loop that the value runs along.
LinearId RunningValues::new_register(const UOp& running, DType dtype) {
  require_registers(running);
  const size_t outside = nest_.state(range_along(running)).depth - 1;
  const uint64_t nothing = identity_bits(running.reduce_arg().op, dtype.element());
  const LinearId sum = emit_.add(outside, Op::Accumulator, dtype, {emit_.constant(dtype, nothing)});
  InstanceKey key = nest_.key_of(running);
  key.use = kRegisterUse;
  emit_.remember(key, sum);
  return sum;
}

LinearId RunningValues::scaled(const UOp& running, LinearId before) {
  if (running.src().size() != 4) return before;
  const DType element = running.dtype();
  return emit_.elementwise(Op::Mul, element, {before, values_.value_of(running.src(3))});
}

LinearId RunningValues::begin_continued(const UOp& running) {
  emit_.set_relied_on(0);
  const DType dtype = running.dtype().with_lanes(nest_.lanes_of(running));
  return scaled(running, new_register(running, dtype));
}

// A step folds what the register has so far; it was made with the sum that goes on from it.
void RunningValues::step_in_registers(const Task& task) {
  const UOp& node = task.node;
  remember_state(node);
  RangeSet own = 0;
  if (closes_ranges(node.src(0)))
    for (const UOp& r : node.src(0).src().subspan(1)) own |= bit(nest_.kernel().position(r));
  const bool is_continued = static_cast<bool>(continued_by(UOp(node.src(0)), own));
  nest_.for_each_instance(nest_.instances_of(node, task.own), [&](size_t) {
    emit_.set_relied_on(0);
    const Op op = node.reduce_arg().op;
    const LinearId part = emit_.widened(values_.value_of(node.src(0)), nest_.lanes_of(node));
    const DType dtype = emit_.op(part).dtype;
    InstanceKey key = nest_.key_of(node);
    key.use = kRegisterUse;
    const LinearId sum = is_continued ? *emit_.find(key) : new_register(node, dtype);
    const LinearId before = emit_.add(emit_.depth(), Op::Accumulator, dtype, {sum});
    const LinearId next =
        is_continued ? part : emit_.add(emit_.depth(), op, dtype, {scaled(node, before), part});
    emit_.add(emit_.depth(), Op::Set, kVoid, {sum, next});
    key.use = kBeforeUse;
    emit_.remember(key, before, emit_.relied_on());
    emit_.remember(nest_.key_of(node), next, emit_.relied_on());
  });
}

void RunningValues::step(const Task& task) {
  if (in_registers(task.node)) return step_in_registers(task);
  const UOp& node = task.node;
  const auto each = [&](const auto& body) {
    nest_.for_each_instance(nest_.instances_of(node, task.own), [&](size_t) {
      for (const UOp& fact : nest_.kernel().facts)
        if (!(nest_.free_of(fact) & ~nest_.free_of(node)) && prover_.impossible(fact)) return;
      body();
    });
  };
  remember_state(node);
  const LinearId base = *emit_.find(state_key(node));
  each([&] { begin(node); });
  const LinearId zero = emit_.index_constant(0);
  const LinearId step = values_.scalar_index(node.src(1));
  const LinearId later = emit_.elementwise(Op::Less, kBool, {zero, step});
  const LinearOp condition = emit_.op(later);
  if (condition.op != Op::Const || condition.imm != 0) {
    const bool always = condition.op == Op::Const;
    if (!always) emit_.open(Op::If, kVoid, {later});
    each([&] { fold(node, base, *emit_.find(nest_.key_of(node))); });
    if (!always) emit_.close();
  }
  const UOp place_of = state_index(node, node.src(1));
  each([&] {
    const LinearId part = *emit_.find(nest_.key_of(node));
    accesses_.store(node, base, place_of, part, std::nullopt, nest_.lanes_of(node));
  });
}

}  // namespace tiny
