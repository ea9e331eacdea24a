#include "codegen/linearize/conditions.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/checked.h"
#include "base/sort.h"
#include "cost/estimate.h"
#include "ir/affine.h"
#include "ir/build.h"
#include "ir/fold.h"

namespace tiny {

namespace {

constexpr int64_t kWindowMin = 64;  // instances

// Where a walk ends that stays within the loops of a stage.
bool is_closed(const UOp& u) {
  return closes_ranges(u);
}

void add_once(const UOp& e, std::vector<UOp>& to) {
  if (std::ranges::find(to, e) == to.end()) to.push_back(e);
}

}  // namespace

bool is_index(const UOp& node) {
  if (node.dtype() != kInt64) return false;
  switch (node.op()) {
    case Op::Const:
    case Op::Range:
    case Op::Variable:
      return true;
    case Op::Neg:
      return is_index(node.src(0));
    case Op::Add:
    case Op::Mul:
    case Op::FloorDiv:
    case Op::FloorMod:
    case Op::Max:
    case Op::Min:
      return is_index(node.src(0)) && is_index(node.src(1));
    default:
      return false;
  }
}

bool compares_indices(const UOp& node) {
  return (node.op() == Op::Less || node.op() == Op::LessEqual) && is_index(node.src(0)) &&
         is_index(node.src(1));
}

const UOp& Conditions::slack(const UOp& comparison) {
  UOp& slack = slacks_[comparison.node()];
  if (!slack) slack = prover_.without_quotients(slack_of(comparison));
  return slack;
}

// That an index is not negative, and below its axis's size.
void Conditions::add_range_condition(const UOp& index, const UOp& size, std::vector<UOp>& to) {
  if (index.op() == Op::FloorMod && index.src(1) == size && prover_.bounds_of(size).lo > 0) return;
  // Mostly the bounds say it, and nothing need be made.
  const Interval range = prover_.bounds_of(index);
  if (range.lo < 0 && !prover_.holds_by_sizes(index))
    add_once(prover_.without_quotients(index), to);
  if (size.is_const() && range.hi < size.const_int()) return;
  const UOp room = add(sub(size, index), -1);
  if (!prover_.holds_by_sizes(room)) add_once(prover_.without_quotients(room), to);
}

// Those of an access's axes.  `of_places`: for the indices that are Places alone.
void Conditions::add_range_conditions(const UOp& access, bool of_places, std::vector<UOp>& to) {
  const ViewArg& view = access.view_arg();
  Graph& graph = access.graph();
  const size_t first = access.op() == Op::Store ? 2 : 1;
  size_t symbolic = first + view.shape.size();
  for (size_t i = 0; i < view.shape.size(); ++i) {
    const UOp& e = access.src(first + i);
    const UOp size =
        view.shape[i] == kSymbolicDim ? UOp(access.src(symbolic++)) : graph.integer(view.shape[i]);
    if (of_places && e.op() != Op::Place) continue;
    add_range_condition(e, size, to);
  }
}

const std::vector<UOp>& Conditions::of_read(const UOp& node) {
  const auto [at, is_new] = of_reads_.try_emplace(node.node());
  std::vector<UOp>& all = at->second;
  if (!is_new) return all;
  if (node.op() == Op::Load) add_range_conditions(node, false, all);
  // Scratch of a thread's own is read on behind a size that the run knows (has_room).
  if (node.op() != Op::Index || !node.src(0).stage_arg().is_shared) return all;
  const UOp& stage = node.src(0);
  for (size_t i = 1; i < stage.src().size(); ++i) {
    const int64_t room = prover_.bounds_of(stage.src(i).src(0)).hi;
    add_range_condition(node.src(i), node.graph().integer(room), all);
  }
  return all;
}

const std::vector<UOp>& Conditions::below(const UOp& node) {
  if (const auto found = below_.find(node.node()); found != below_.end()) return found->second;
  std::vector<UOp> all;
  if (node.op() == Op::Load) all = of_read(node);
  std::vector<UOp> work;
  if (node.op() != Op::Load) work.push_back(node);
  while (!work.empty()) {
    const UOp root = work.back();
    work.pop_back();
    const bool is_filled = is_stage(root);
    const std::span<const UOp> from = is_filled ? root.src().first(1) : std::span(&root, 1);
    for (const UOp& u : topological(from, is_filled ? is_closed : is_stage)) {
      if (u.op() == Op::Load || u.op() == Op::Index)
        for (const UOp& e : of_read(u)) add_once(e, all);
      if (compares_indices(u)) add_once(slack(u), all);
      if (is_stage(u) || (is_filled && is_closed(u) && !is_window(u))) work.push_back(u);
    }
  }
  return below_.emplace(node.node(), std::move(all)).first->second;
}

const std::vector<UOp>& Conditions::void_outside(const Task& task) {
  const auto [at, is_new] = void_outside_.try_emplace(task.node.node());
  std::vector<UOp>& all = at->second;
  if (!is_new || task.node.op() != Op::Reduce || task.node.reduce_arg().op != Op::Add) return all;
  std::vector<UOp> factors{task.node.src(0)};
  while (!factors.empty()) {
    const UOp u = add_choices(factors.back(), 0, all);
    factors.pop_back();
    if (u.op() == Op::Mul || u.op() == Op::Cast)
      factors.insert(factors.end(), u.src().begin(), u.src().end());
    if (u.op() != Op::Load) continue;
    for (const UOp& e : of_read(u)) add_once(e, all);
  }
  return all;
}

UOp Conditions::add_choices(UOp value, uint64_t nothing, std::vector<UOp>& to) {
  for (; value.op() == Op::Where; value = UOp(value.src(1))) {
    if (!value.src(2).is_const() || value.src(2).const_bits() != nothing) break;
    std::vector<UOp> work{value.src(0)};
    while (!work.empty()) {
      const UOp condition = work.back();
      work.pop_back();
      if (condition.op() == Op::And) work.insert(work.end(), {condition.src(0), condition.src(1)});
      if (compares_indices(condition)) add_once(slack(condition), to);
    }
  }
  return value;
}

bool Conditions::guards(const UOp& fact, const Task& task) {
  const RangeSet free = nest_.free_of(fact);
  if (free & nest_.words()) return false;  // the steps of a word are guarded one by one
  return (free & task.own) && !(free & ~(task.own | nest_.free_of(task.node)));
}

const Conditions::TaskFacts& Conditions::facts_of(const Task& task) {
  const auto [at, is_new] = task_facts_.try_emplace(task.node.node());
  if (!is_new) return at->second;
  for (const UOp& fact : nest_.kernel().facts) {
    if (!(nest_.free_of(fact) & ~nest_.free_of(task.node) & ~task.own))
      at->second.known.push_back(fact);
    if (guards(fact, task) && !has_room(fact, task))
      at->second.guards.push_back(in_whole_vectors(fact, task));
  }
  // What is out of range is not stored.
  if (task.node.op() == Op::Store) add_range_conditions(task.node, true, at->second.guards);
  return at->second;
}

std::vector<UOp> Conditions::word_facts(const Task& task) {
  std::vector<UOp> facts;
  for (const UOp& fact : nest_.kernel().facts) {
    const RangeSet free = nest_.free_of(fact);
    if ((free & task.own & nest_.words()) && !(free & ~(task.own | nest_.free_of(task.node))))
      facts.push_back(fact);
  }
  return facts;
}

std::vector<UOp> Conditions::of_tasks(Tasks tasks) {
  std::vector<UOp> all;
  for (const Task* t : tasks) {
    for (const UOp& fact : nest_.kernel().facts)
      if ((nest_.free_of(fact) & (t->own | nest_.free_of(t->node))) && !has_room(fact, *t))
        all.push_back(in_whole_vectors(fact, *t));
    const bool is_filled = is_stage(t->node);
    for (const UOp& s : is_filled ? std::span(&t->node, 1) : t->node.src())
      for (const UOp& e : below(s)) all.push_back(e);
  }
  return all;
}

std::vector<UOp> Conditions::of_window(const Task& task) {
  std::vector<UOp> all = void_outside(task);
  const uint64_t nothing = identity_bits(task.node.reduce_arg().op, task.node.dtype());
  add_choices(task.node.src(0), nothing, all);
  return all;
}

bool Conditions::is_window(const UOp& node) {
  if (node.op() != Op::Reduce) return false;
  RangeSet all = nest_.free_of(node);
  for (const UOp& r : node.src().subspan(1)) all |= nest_.free_of(r);
  const RangeSet own = all & ~nest_.free_of(node);
  int64_t instances = 1;
  for (RangeSet set = all & nest_.unrolled(); set && instances < kWindowMin; set &= set - 1)
    instances *= nest_.extent(static_cast<size_t>(std::countr_zero(set)));
  return !(own & (nest_.loops() | nest_.words())) && instances >= kWindowMin;
}

// Whether all coordinates of the stage's ranges have places of their own.
bool Conditions::has_place_for_each(const UOp& stage) {
  std::vector<std::pair<int64_t, int64_t>> dimensions;  // strides, and the last coordinates
  for (size_t i = 1; i < stage.src().size(); ++i)
    dimensions.emplace_back(stage.stage_arg().strides[i - 1],
                            prover_.bounds_of(stage.src(i).src(0)).hi - 1);
  sort_stable(dimensions);
  int64_t last = 0;
  for (const auto& [stride, most] : dimensions) {
    if (stride <= last) return false;
    last += stride * most;
  }
  return true;
}

// Whether a fact on lanes of a run-time size, which keeps the last tile from being filled behind
// the size, is of no use: what is filled there has places that nobody reads, and reads no memory.
// Whole tiles and the last are one loop then.
bool Conditions::has_room(const UOp& fact, const Task& task) {
  const RangeSet own = nest_.free_of(fact) & task.own;
  if (task.node.op() != Op::Stage || !(own & nest_.lanes()) || (task.own & nest_.words()))
    return false;
  bool is_of_run = false;
  for (RangeSet set = own; set; set &= set - 1) {
    const UOp& r = nest_.range(static_cast<size_t>(std::countr_zero(set)));
    is_of_run = is_of_run || !r.src(0).is_const();
  }
  if (!is_of_run || !has_place_for_each(task.node)) return false;
  return std::ranges::none_of(topological({&task.node.src(0), 1}), [&](const UOp& u) {
    return u.op() == Op::Load && (nest_.free_of(u) & own);
  });
}

// Without a Load that is asked for in it: those of sums ask where they are summed.
bool Conditions::is_filled_from_memory(const Task& task, RangeSet own) {
  return std::ranges::any_of(topological({&task.node.src(0), 1}, is_closed), [&](const UOp& u) {
    return u.op() == Op::Load && (nest_.free_of(u) & own);
  });
}

// A fact on lanes of a known size, as a stage that has places behind it is filled: up to the end of
// the last vector.  A whole vector that is stored is forwarded to the load of it, part of one is
// not; and what lanes nobody reads would be computed from otherwise is whatever lay there,
// denormals too, of which each takes an Intel a hundred cycles.
UOp Conditions::in_whole_vectors(const UOp& fact, const Task& task) {
  if (task.node.op() != Op::Stage || task.node.stage_arg().is_shared) return fact;
  const RangeSet own = nest_.free_of(fact) & task.own;
  const RangeSet lane = own & nest_.lanes();
  if (std::popcount(lane) != 1 || (task.own & nest_.words())) return fact;
  const UOp& lanes = nest_.range(static_cast<size_t>(std::countr_zero(lane)));
  const std::optional<Affine> sum = affine(fact);
  if (!sum || !lanes.src(0).is_const() || sum->coefficient(lanes) != -1) return fact;
  const int64_t width = lanes.src(0).const_int();
  const auto is_aligned = [&](const AffineTerm& t) {
    return t.atom == lanes ||
           (t.atom.op() == Op::Range && t.atom.src(0).is_const() && t.coefficient % width == 0);
  };
  const int64_t left = floor_mod(-(sum->constant + 1), width);
  if (left == 0 || !std::ranges::all_of(sum->terms, is_aligned)) return fact;
  if (!has_place_for_each(task.node) || is_filled_from_memory(task, own)) return fact;
  return add(fact, left);
}

bool Conditions::is_long_window(Tasks tasks, size_t position) const {
  const UOp& size = nest_.range(position).src(0);
  return size.is_const() && size.const_int() >= kTapsSplit &&
         std::ranges::all_of(
             tasks, [&](const Task* t) { return (t->todo & nest_.loops() & ~bit(position)) == 0; });
}

}  // namespace tiny
