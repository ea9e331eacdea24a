// Values that run along a loop (Running, Before, Last).  They lie in scratch, for every coordinate
// of the ranges inside that loop, twice: a step reads what the one before it left and writes the
// other copy.  So a step may be computed again without harm, wherever loops are opened anew.
#include "base/checked.h"
#include "base/error.h"
#include "codegen/linearize/lineariser.h"
#include "ir/build.h"

namespace tiny {

namespace {

constexpr int64_t kLine = 64;      // bytes
constexpr uint64_t kStateUse = 1;  // of an InstanceKey: where a running value lies

}  // namespace

// The position of the range that a Running or Last follows.
size_t Lineariser::range_run_along(const UOp& node) const {
  return kernel_.position(node.src(1));
}

// The loops that are open where what a Last node needs can be begun: those outside of its range.
RangeSet Lineariser::loops_outside(const UOp& last) {
  return free_of(last) & loops_ & (bit(range_run_along(last)) - 1);
}

const Lineariser::RunningState& Lineariser::state_of(const UOp& running) {
  const auto found = running_.find(running.node());
  if (found != running_.end()) return found->second;
  const size_t along = range_run_along(running);
  const RangeSet free = free_of(running) & ~bit(along);
  RunningState state;
  state.size = 1;
  state.index = running.graph().integer(0);
  const auto add_dimension = [&](size_t position) {
    const UOp& range = kernel_.ranges[position].range;
    state.index = add(state.index, mul(range, state.size));
    state.size = checked_mul(state.size, bounds_.of(range.src(0)).hi, "a running value's size");
  };
  // Lanes side by side, then the innermost ranges.
  for (size_t i = 0; i < kernel_.ranges.size(); ++i)
    if (free & vec_ & bit(i)) add_dimension(i);
  for (size_t i = kernel_.ranges.size(); i-- > 0;)
    if ((free & ~vec_ & bit(i)) && (i > along || !(loops_ & bit(i)))) add_dimension(i);
  const int64_t bytes = running.dtype().bytes();
  state.size = round_up(checked_mul(state.size, bytes, "a running value's size"), kLine) / bytes;
  state.offset = program_.scratch_bytes;
  program_.scratch_bytes += 2 * state.size * bytes;
  return running_.emplace(running.node(), std::move(state)).first->second;
}

// The address of a running value, in this block: no access of it is placed before.
LinearId Lineariser::state_base(const UOp& running) {
  const LinearId scratch = tree_.add(0, Op::Scratch, kAddress, {}, state_of(running).offset);
  return tree_.add(tree_.depth(), Op::Address, kAddress, {scratch, index_constant(0)}, 1);
}

// The place of what a step left.
UOp Lineariser::state_index(const UOp& running, const UOp& step) {
  const RunningState& state = state_of(running);
  return add(mul(floor_mod(step, 2), state.size), state.index);
}

LinearId Lineariser::load_state(const UOp& running, LinearId base, const UOp& step) {
  const Place p = place(base, state_index(running, step), running.dtype().bytes());
  const size_t depth = std::max(depth_of(p.address), depth_of(p.index));
  const DType dtype = running.dtype().with_lanes(lanes_in(free_of(running)));
  return tree_.add(depth, Op::Load, dtype, {p.address, p.index}, p.displacement, p.lane_stride);
}

// A Last node is known by the coordinates outside of its range.
InstanceKey Lineariser::state_key(const UOp& node) {
  InstanceKey key{node.node(), {}, kStateUse};
  const size_t along = range_run_along(node);
  for (size_t i = 0; i < along; ++i) {
    if (free_of(node) & loops_ & fixed_ & bit(i))
      key.coordinates[digits_[i].word] += states_[i].digit;
  }
  return key;
}

void Lineariser::remember_state(const UOp& node) {
  tree_.remember(state_key(node), state_base(node.op() == Op::Last ? UOp(node.src(0)) : node));
}

// What a Before or Last node reads.
LinearId Lineariser::read_state(const UOp& node) {
  const UOp running = node.src(0);
  const bool is_last = node.op() == Op::Last;
  const LinearId* base = tree_.find(state_key(is_last ? node : running));
  invariant(base != nullptr, "a running value is folded before it is read");
  const UOp& range = running.src(1);
  return load_state(running, *base, is_last ? sub(steps_of_run(range), 1) : add(range, 1));
}

// How many steps the loop of running values took, or takes.
UOp Lineariser::steps_of_run(const UOp& range) const {
  const auto found = run_ends_.find(range.node());
  return found == run_ends_.end() ? UOp(range.src(0)) : found->second;
}

// Where the loop may end: where no task needs another step, for whatever coordinates the loops and
// lanes inside have.  The first step is always taken.
void Lineariser::bound_run(const std::vector<Task*>& group, size_t range, LoopBounds& limits) {
  const UOp& r = kernel_.ranges[range].range;
  run_ends_.erase(r.node());
  UOp needed;
  for (const Task* t : group) {
    if (t->node.op() != Op::Last) return;
    const UOp& own = t->node.src(0).src(2);
    if (needed && !(needed == own)) return;
    needed = own;
  }
  const std::optional<Affine> sum = fixed(needed);
  const int64_t c = sum ? sum->coefficient(r) : 0;
  if (c >= 0) return;
  Affine rest{sum->constant, {}};
  for (const AffineTerm& term : sum->terms) {
    if (term.atom == r) continue;
    if (!(free_of(term.atom) & ~open_)) {
      rest.terms.push_back(term);
      continue;
    }
    const Interval values = bounds_.of(term.atom);
    if (values.lo == INT64_MIN || values.hi == INT64_MAX) return;
    rest.constant +=
        checked_mul(term.coefficient, term.coefficient > 0 ? values.hi : values.lo, "an index");
  }
  Graph& graph = needed.graph();
  const UOp last = floor_div(to_uop(graph, rest), -c);
  const UOp end = minimum(r.src(0), add(maximum(last, 0), 1));
  if (end == r.src(0)) return;
  kept_.push_back(end);
  run_ends_[r.node()] = end;
  limits.end = scalar_index(end);
}

// The register in which an instance is folded: that of the sum of this step, if nothing else reads
// it.
LinearId Lineariser::begin_running(const UOp& node) {
  relied_on_ = 0;
  const int64_t lanes = lanes_in(free_of(node));
  const LinearId value = widened(value_of(node.src(0)), lanes);
  const LinearOp& op = tree_.op(value);
  const bool is_own = op.op == Op::Accumulator && users_[node.src(0).node()] == 1;
  const LinearId part =
      is_own ? value : tree_.add(tree_.depth(), Op::Accumulator, op.dtype, {value});
  tree_.remember(key_of(node), part, relied_on_);
  return part;
}

void Lineariser::fold_running(const UOp& node, LinearId base, LinearId part) {
  const DType dtype = tree_.op(part).dtype;
  const UOp& range = node.src(1);
  LinearId before = load_state(node, base, add(range, 1));
  if (node.src().size() == 4) {
    relied_on_ = 0;
    const LinearId scaled[] = {before, value_of(node.src(3))};
    before = elementwise_op(Op::Mul, dtype.element(), scaled);
  }
  const LinearId next =
      tree_.add(tree_.depth(), node.reduce_arg().op, dtype, {widened(before, dtype.lanes), part});
  tree_.add(tree_.depth(), Op::Set, kVoid, {part, next});
}

// One step of a running value: the first is what it folds, later ones add what was before.
void Lineariser::step_running(Task& task) {
  const UOp& node = task.node;
  const auto each = [&](const auto& body) {
    for_each_instance(value_ranges(task), [&](size_t) {
      for (const UOp& fact : kernel_.facts)
        if (!(free_of(fact) & ~free_of(node)) && impossible(fact)) return;
      body();
    });
  };
  remember_state(node);
  const LinearId base = *tree_.find(state_key(node));
  each([&] { begin_running(node); });
  const LinearId both[] = {index_constant(0), scalar_index(node.src(1))};
  const LinearId later = elementwise_op(Op::Less, kBool, both);
  const LinearOp condition = tree_.op(later);
  if (condition.op != Op::Const || condition.imm != 0) {
    const bool always = condition.op == Op::Const;
    if (!always) tree_.open(Op::If, kVoid, {later});
    each([&] { fold_running(node, base, *tree_.find(key_of(node))); });
    if (!always) tree_.close();
  }
  const UOp place_of = state_index(node, node.src(1));
  each([&] {
    store(node, base, place_of, *tree_.find(key_of(node)), std::nullopt, lanes_in(free_of(node)));
  });
}

}  // namespace tiny
