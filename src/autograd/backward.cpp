#include "autograd/backward.h"

#include <algorithm>

#include "autograd/call_rule.h"
#include "autograd/loop_rule.h"
#include "autograd/rules.h"
#include "base/error.h"
#include "ir/build.h"
#include "shape/shape.h"

namespace tiny {

namespace {

// Ops whose rules see several nodes at once.
bool is_of_several(Op op) {
  return op == Op::Scan || op == Op::ScanStore || op == Op::ScanStep || op == Op::Call;
}

}  // namespace

Backward::Backward(const Ref<Context>& context, std::span<const UOp> losses,
                   std::span<const UOp> targets)
    : context_(context),
      order_(topological(losses)),
      depends_(context->graph().id_limit()),
      reached_(depends_.size()) {
  for (const UOp& t : targets) depends_[t.id()] = true;
  for (const UOp& u : order_) {
    if (u.op() == Op::Call) {
      const CallResult& result = call_result(u);
      Call& call = calls_[result.call.get()];
      if (!call.first) call.first = u.node();
      call.outputs.resize(result.call->outputs.size());
    }
    if (!gradient_rule(u.op()).apply && !is_of_several(u.op())) continue;
    for (const UOp& s : u.src()) depends_[u.id()] = depends_[u.id()] || changes(s);
  }
}

void Backward::reach(const UOp& node, Adjoint adjoint) {
  Adjoint& here = reached_[node.id()];
  here = here ? Adjoint(add(here.total(), adjoint.total())) : std::move(adjoint);
}

UOp Backward::of(const UOp& target) const {
  if (target.id() >= reached_.size() || !reached_[target.id()]) return UOp();
  return reached_[target.id()].total();
}

// Every user of a node comes before it: what reaches it is complete.
void Backward::run() {
  for (size_t i = order_.size(); i-- > 0;) {
    const UOp& node = order_[i];
    if (node.op() == Op::ScanStore) leave_loop(node);
    const bool is_on_the_way = depends_[node.id()] && reached_[node.id()];
    const OriginScope origin(node);
    if (node.op() == Op::Call) {
      const CallResult& result = call_result(node);
      Call& call = calls_[result.call.get()];
      if (is_on_the_way) call.outputs[result.index] = reached_[node.id()].total();
      if (call.first == node.node()) leave_call(node);
    } else if (is_on_the_way && node.op() == Op::Scan) {
      note_scan(node);
    } else if (is_on_the_way) {
      go_down(node);
    }
  }
}

void Backward::go_down(const UOp& node) {
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
  list[part.index] = reached_[scan.id()].total();
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
    reach(source, Adjoint(adjoint));
}

}  // namespace tiny
