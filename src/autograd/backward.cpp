#include "autograd/backward.h"

#include <algorithm>
#include <optional>

#include "autograd/call_rule.h"
#include "autograd/loop_rule.h"
#include "autograd/rules.h"
#include "autograd/segment.h"
#include "autograd/skew.h"
#include "base/error.h"
#include "base/sort.h"
#include "ir/build.h"
#include "shape/movement_axis.h"
#include "shape/shape.h"

namespace tiny {

namespace {

// Ops whose rules see several nodes at once.
bool is_of_several(Op op) {
  return op == Op::Scan || op == Op::ScanStore || op == Op::ScanStep || op == Op::Call;
}

bool is_alias(const UOp& node, AliasKind kind) {
  return node.op() == Op::Alias && alias_kind(node) == kind;
}

}  // namespace

Backward::Backward(const Ref<Context>& context, std::span<const UOp> losses,
                   std::span<const UOp> targets, Reach reach)
    : context_(context),
      reach_(reach),
      order_(topological(losses)),
      depends_(context->graph().id_limit()),
      reached_(depends_.size()) {
  for (const UOp& t : targets) {
    depends_[t.id()] = true;
    targets_.insert(t.node());
  }
  for (const UOp& u : order_) {
    if (u.op() == Op::Call) {
      const CallResult& result = call_result(u);
      Call& call = calls_[result.call.get()];
      if (!call.first) call.first = u.node();
      call.outputs.resize(result.call->outputs.size());
    }
    if (!gradient_rule(u.op()).apply && !is_of_several(u.op())) continue;
    if (is_alias(u, AliasKind::Detached)) continue;
    for (const UOp& s : u.src()) depends_[u.id()] = depends_[u.id()] || changes(s);
  }
}

void Backward::reach(const UOp& node, Adjoint adjoint) {
  Adjoint& here = reached_[node.id()];
  here = here ? Adjoint(add(here.total(), adjoint.total())) : std::move(adjoint);
}

UOp Backward::of(const UOp& target) const {
  const Adjoint reached = adjoint_of(target);
  return reached ? reached.total() : UOp();
}

Adjoint Backward::adjoint_of(const UOp& target) const {
  return target.id() < reached_.size() ? reached_[target.id()] : Adjoint();
}

// Every user of a node comes before it: what reaches it is complete.
void Backward::run() {
  for (size_t i = order_.size(); i-- > 0;) {
    const UOp& node = order_[i];
    join_slices(node);
    if (node.op() == Op::ScanStore) leave_loop(node);
    const bool is_end = reach_ == Reach::ToTargets && targets_.contains(node.node());
    const bool is_on_the_way = depends_[node.id()] && reached_[node.id()] && !is_end;
    const OriginScope origin(node);
    if (node.op() == Op::Call) {
      const CallResult& result = call_result(node);
      Call& call = calls_[result.call.get()];
      if (is_on_the_way) call.outputs[result.index] = reached_[node.id()].total();
      if (call.first == node.node()) leave_call(node);
    } else if (is_on_the_way && node.op() == Op::Scan) {
      note_scan(node);
    } else if (is_on_the_way && is_alias(node, AliasKind::Recomputed)) {
      leave_segment(node);
    } else if (is_on_the_way && !leave_skew(node) && !keep_slice(node)) {
      go_down(node);
    }
  }
}

namespace {

bool is_one(const UOp& value) {
  const UOp below = below_movement(value);
  return below.is_const() && is_uniform(value) && below == below.graph().constant(below.dtype(), 1);
}

// exp(z) where the node is 1 / (1 + exp(z)), or exp(z) / (1 + exp(z)); else no node.
UOp logistic_power(const UOp& node) {
  if (node.op() != Op::Div || node.src(1).op() != Op::Add) return UOp();
  const UOp& sum = node.src(1);
  for (const size_t i : {size_t{0}, size_t{1}}) {
    const UOp& power = sum.src(i);
    if (power.op() != Op::Exp || !is_one(sum.src(1 - i))) continue;
    if (node.src(0) == power || is_one(node.src(0))) return power;
  }
  return UOp();
}

}  // namespace

// Whether the node is a skew, whose elements are each one of those that were skewed: by the rules
// of what it is made of each would be one of many, all but one of them zeros.
bool Backward::leave_skew(const UOp& shrink) {
  const std::optional<SkewedRows> rows = skewed_rows_of(shrink);
  if (!rows || !changes(rows->padded)) return false;
  const Adjoint& here = reached_[shrink.id()];
  Shape shape = here.shape();
  shape.erase(shape.begin() + static_cast<ptrdiff_t>(rows->axis) + 2);
  reach(rows->padded, here.reshaped(shape).unskewed(rows->axis, rows->dilation));
  return true;
}

// Whether the node is a slice along one axis, of what its adjoint is kept for.
bool Backward::keep_slice(const UOp& shrink) {
  if (shrink.op() != Op::Shrink || !changes(shrink.src(0))) return false;
  const Shape& all = shape_of(shrink.src(0));
  const Shape& part = shape_of(shrink);
  Slice slice{.shrink = shrink};
  size_t cut = 0;
  for (size_t i = 0; i < all.size(); ++i)
    if (!(all[i] == part[i])) slice.axis = i, ++cut;
  const Dim begin = movement_dims(shrink)[slice.axis];
  if (cut != 1 || !all[slice.axis].is_const() || !part[slice.axis].is_const() || !begin.is_const())
    return false;
  slice.begin = begin.value();
  slice.end = slice.begin + part[slice.axis].value();
  slices_[shrink.src(0).node()].push_back(slice);
  return true;
}

// Slices that are all of the value stand side by side; padded and added each would be computed for
// the places of the others too.
void Backward::join_slices(const UOp& node) {
  const auto found = slices_.find(node.node());
  if (found == slices_.end()) return;
  std::vector<Slice> slices = std::move(found->second);
  slices_.erase(found);
  sort_stable(slices, {}, [](const Slice& s) { return std::pair(s.axis, s.begin); });
  const Shape& shape = shape_of(node);
  for (size_t first = 0; first < slices.size();) {
    const size_t axis = slices[first].axis;
    std::vector<UOp> parts;
    int64_t end = 0;
    size_t next = first;
    for (; next < slices.size() && slices[next].axis == axis && slices[next].begin == end; ++next) {
      parts.push_back(reached_[slices[next].shrink.id()].total());
      end = slices[next].end;
    }
    const OriginScope origin(slices[first].shrink);
    if (parts.size() > 1 && shape[axis].is(end)) {
      reach(node, Adjoint(make_concat(parts, static_cast<int64_t>(axis))));
      first = next;
    } else {
      go_down(slices[first++].shrink);
    }
  }
}

void Backward::go_down(const UOp& node) {
  // By y = 1 / (1 + exp(z)) the slope is y (y - 1), of exp(z) / (1 + exp(z)) it is y (1 - y):
  // numbers also where exp(z) is beyond all numbers.
  if (const UOp power = logistic_power(node); power && changes(power.src(0))) {
    const UOp& sum = node.src(1);
    const UOp one = UOp(sum.src(0) == power ? sum.src(1) : sum.src(0));
    const bool rises = node.src(0) == power;
    const UOp y = rises ? div(one, sum) : node;
    reach(power.src(0), reached_[node.id()].times(mul(y, rises ? sub(one, y) : sub(y, one))));
    return;
  }
  const GradientRule& rule = gradient_rule(node.op());
  if (!rule.apply) return;
  std::vector<bool> wanted;
  bool any = false;
  for (const UOp& s : node.src()) {
    wanted.push_back(changes(s));
    any |= wanted.back();
  }
  if (!any) return;
  Step step(node, reached_[node.id()], wanted);
  rule.apply(step);
  for (size_t s = 0; s < wanted.size(); ++s)
    if (wanted[s] && step.given(s)) reach(node.src(s), step.given(s));
}

// The rules read the values of the segment as they are computed again, once what reached its result
// is there.
void Backward::leave_segment(const UOp& alias) {
  if (!changes(alias.src(0))) return;
  const UOp total = reached_[alias.id()].total();
  const UOp upstream = total.graph().make(Op::Contiguous, {total});
  const Segment segment =
      computed_again(alias, upstream, [&](const UOp& u) { return targets_.contains(u.node()); });
  std::vector<UOp> wanted;
  for (const auto& [node, again] : segment.begins)
    if (changes(node)) wanted.push_back(again);
  Backward inner(context_, {&segment.value, 1}, wanted, Reach::ToTargets);
  inner.reach(segment.value, Adjoint(upstream));
  inner.run();
  for (const auto& [node, again] : segment.begins)
    if (const UOp slope = changes(node) ? inner.of(again) : UOp()) reach(node, Adjoint(slope));
}

void Backward::leave_call(const UOp& result) {
  const std::vector<UOp>& reached = calls_[call_result(result).call.get()].outputs;
  if (std::ranges::none_of(reached, [](const UOp& u) { return static_cast<bool>(u); })) return;
  for (auto& [source, adjoint] : call_adjoints(context_, result, reached))
    if (changes(source)) reach(source, Adjoint(adjoint));
}

void Backward::note_scan(const UOp& scan) {
  const ScanPart& part = scan_part(scan);
  Loop& loop = loops_[part.loop.get()];
  loop.scan = scan;
  loop.outputs.resize(part.loop->outputs);
  loop.states.resize(part.loop->states);
  auto& list = part.kind == ScanPart::Kind::Last ? loop.states : loop.outputs;
  UOp& here = list[part.index];
  const UOp total = reached_[scan.id()].total();
  here = here ? add(here, total) : total;
}

// All results of its loop come behind a store.
void Backward::leave_loop(const UOp& store) {
  const auto found = loops_.find(scan_part(store).loop.get());
  if (found == loops_.end()) return;
  const Loop loop = std::move(found->second);
  loops_.erase(found);
  const OriginScope origin(loop.scan);
  const LoopAdjoints upstream{loop.outputs, loop.states};
  const auto changes_here = [&](const UOp& u) { return changes(u); };
  for (auto& [source, adjoint] : loop_adjoints(context_, loop.scan, upstream, changes_here))
    reach(source, std::move(adjoint));
}

}  // namespace tiny
