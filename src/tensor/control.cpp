#include "tensor/control.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "schedule/schedule.h"
#include "shape/shape.h"
#include "tensor/create.h"
#include "tensor/custom.h"
#include "tensor/elementwise.h"
#include "tensor/movement.h"

namespace tiny {

namespace {

using Kind = ScanPart::Kind;

// A number that the run counts steps by, with memory of its own.
UOp counted(const Tensor& number) {
  return stored_whole(contiguous(cast(reshape(number, Shape()), kInt64)));
}

Ref<ScanLoop> counted_loop(size_t outputs, size_t states) {
  Ref<ScanLoop> loop = make_ref<ScanLoop>();
  loop->count = 1;
  loop->outputs = outputs;
  loop->states = states;
  loop->is_counted = true;
  return loop;
}

// Values that one step makes if `condition` says so, and that are `others` (if any) if it does not.
std::vector<UOp> branch(const Tensor& condition, const std::vector<Tensor>& values,
                        const std::vector<UOp>& others) {
  const Ref<ScanLoop> loop = counted_loop(values.size(), 0);
  loop->is_branch = true;
  std::vector<UOp> sources;
  for (size_t i = 0; i < values.size(); ++i)
    sources.push_back(make_scan_store(values[i].node(), {loop, Kind::Output, i}));
  sources.push_back(counted(condition));
  std::vector<UOp> results;
  for (size_t i = 0; i < values.size(); ++i) {
    std::vector<UOp> own = sources;
    if (!others.empty()) own.push_back(others[i]);
    results.push_back(make_scan(own, {loop, Kind::Output, i}));
  }
  return results;
}

// Up to so many elements are chosen one by one where all that is chosen from is cheap: it takes
// less than the launches of a branch.
constexpr double kElementsOneByOne = 16384;

// Whether computing both lists costs nothing to speak of: elementwise work on few elements, as far
// as this sees.  It ends at the first node that says otherwise.
bool are_cheap(const std::vector<Tensor>& yes, const std::vector<Tensor>& no) {
  std::vector<UOp> waiting;
  for (const auto* list : {&yes, &no})
    for (const Tensor& t : *list) waiting.push_back(t.node());
  if (waiting.empty()) return true;
  const uint64_t visit = waiting.front().graph().next_visit();
  double elements = 0;
  while (!waiting.empty()) {
    const UOp u = std::move(waiting.back());
    waiting.pop_back();
    if (std::exchange(u.node()->visit, visit) == visit || has_memory(u)) continue;
    waiting.insert(waiting.end(), u.src().begin(), u.src().end());
    if (has(u.op(), kMovement)) continue;
    if (u.op() == Op::Call || (!has(u.op(), kElementwise) && !u.src().empty())) return false;
    elements += elements_at_most(u);
    if (elements > kElementsOneByOne) return false;
  }
  return true;
}

bool is_empty(const Tensor& x) {
  return std::ranges::any_of(x.shape(), [](const Dim& d) { return d.is(0); });
}

// Whether a value of this shape is the beginning of one of the other along its first axis.
bool is_beginning(const Shape& a, const Shape& of) {
  return !a.empty() && a.size() == of.size() && upper_bound(a[0]) <= upper_bound(of[0]) &&
         std::equal(a.begin() + 1, a.end(), of.begin() + 1);
}

}  // namespace

std::vector<Tensor> choose(const Tensor& condition, const std::vector<Tensor>& yes,
                           const std::vector<Tensor>& no, Dependences& known, const Tensor& guard) {
  invariant(yes.size() == no.size(), "there is a choice for each value");
  const Tensor chosen = cast(reshape(condition, Shape()), kBool);
  for (size_t i = 0; i < yes.size(); ++i)
    require(yes[i].shape() == no[i].shape() && yes[i].dtype() == no[i].dtype(), Status::Unsupported,
            "a choice between values of shapes ", yes[i].shape(), " and ", no[i].shape(),
            ", types ", yes[i].dtype(), " and ", no[i].dtype(),
            " that the run makes; they must be the same");
  const auto is_open = [&](const Tensor& t) { return !known.of(t.node()).on_steps.empty(); };
  std::vector<Tensor> out(yes.size());
  if (are_cheap(yes, no) || is_open(chosen) || std::ranges::any_of(yes, is_open) ||
      std::ranges::any_of(no, is_open)) {
    for (size_t i = 0; i < yes.size(); ++i) out[i] = where(chosen, yes[i], no[i]);
    return out;
  }
  std::vector<Tensor> first, second;
  for (size_t i = 0; i < yes.size(); ++i)
    if (!is_empty(yes[i])) {
      first.push_back(yes[i]);
      second.push_back(no[i]);
    }
  const Tensor other = invert(chosen);
  const auto guarded = [&](const Tensor& c) { return guard ? bit_and(guard, c) : c; };
  const std::vector<UOp> values =
      branch(guarded(other), second, branch(guarded(chosen), first, {}));
  size_t next = 0;
  for (size_t i = 0; i < yes.size(); ++i)
    out[i] = is_empty(yes[i]) ? yes[i]
                              : Tensor(condition.context_ref(),
                                       make_reshape(values[next++], Shape(yes[i].shape())));
  return out;
}

Rounds collect(const Tensor& rounds, const Dim& most, const std::vector<Tensor>& state,
               Dependences& known, const RoundFunction& round, const InductionVariable& induction) {
  const Ref<Context>& context = rounds.context_ref();
  // The number of the round is the first state, whether another follows is no state.
  std::vector<Tensor> before{full(context, kInt64, {}, 0)};
  before.insert(before.end(), state.begin(), state.end());
  const Ref<ScanLoop> loop = counted_loop(0, before.size());
  loop->count = most;
  loop->asks = true;
  loop->induction_variable = induction.variable;
  loop->first = induction.first;
  if (induction.variable) known.open(*loop);
  std::vector<UOp> first;
  std::vector<Tensor> now;
  for (size_t i = 0; i < before.size(); ++i) {
    require(known.of(before[i].node()).on_steps.empty() && !is_empty(before[i]),
            Status::Unsupported, "a loop whose rounds the run counts of a state of shape ",
            before[i].shape(),
            is_empty(before[i]) ? ", without elements" : " that another loop's rounds make");
    first.push_back(stored_whole(contiguous(before[i])));
    now.emplace_back(
        context, make_scan_step(first.back(), {loop, Kind::State, i, false, before[i].shape()}));
  }
  Round made = round(now.front(), {now.begin() + 1, now.end()});
  loop->outputs = made.collected.size();
  made.state.insert(made.state.begin(), now.front() + full(context, kInt64, {}, 1));
  std::vector<UOp> sources;
  for (size_t i = 0; i < made.collected.size(); ++i) {
    const Tensor& value = made.collected[i];
    require(!is_empty(value) && !depend_on(value.shape(), induction.variable), Status::Unsupported,
            "a loop whose rounds the run counts collects values of shape ", value.shape(),
            is_empty(value) ? ", without elements" : ", of which each round has another");
    sources.push_back(make_scan_store(value.node(), {loop, Kind::Output, i}));
  }
  for (size_t i = 0; i < before.size(); ++i) {
    const Tensor& next = made.state[i];
    const bool fits = next.shape() == before[i].shape() ||
                      (induction.variable && is_beginning(next.shape(), before[i].shape()));
    require(fits && next.dtype() == before[i].dtype(), Status::Unsupported,
            "a loop whose rounds the run counts makes a state of shape ", next.shape(),
            " and type ", next.dtype(), " of one of ", before[i].shape(), " and ",
            before[i].dtype(), "; they must be the same");
    sources.push_back(make_scan_store(next.node(), {loop, Kind::State, i}));
  }
  const Tensor again = cast(reshape(made.again, Shape()), kBool);
  sources.push_back(make_scan_store(again.node(), {loop, Kind::Again, 0}));
  sources.push_back(counted(rounds));
  sources.insert(sources.end(), first.begin(), first.end());
  Rounds out;
  for (size_t i = 0; i < before.size(); ++i)
    out.state.push_back(contiguous(Tensor(context, make_scan(sources, {loop, Kind::Last, i}))));
  out.count = out.state.front();
  out.state.erase(out.state.begin());
  for (size_t i = 0; i < loop->outputs; ++i)
    out.collected.emplace_back(context, make_scan(sources, {loop, Kind::Output, i}));
  return out;
}

std::vector<Tensor> repeat(const Tensor& rounds, const std::vector<Tensor>& state,
                           Dependences& known, const RoundFunction& round) {
  return collect(rounds, 1, state, known, round).state;
}

}  // namespace tiny
